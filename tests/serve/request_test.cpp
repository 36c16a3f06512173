#include "http/rate_limit.h"
#include "http/request_fields.h"
#include "http/translate_call.h"

#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::http {
namespace {

HttpRequest json(const std::string& body) {
  HttpRequest request;
  request.content_type = "application/json; charset=utf-8";
  request.body = body;
  return request;
}

HttpRequest form(const std::string& body) {
  HttpRequest request;
  request.content_type = "application/x-www-form-urlencoded";
  request.body = body;
  return request;
}

template <class Body>
int status_of(Body&& body) {
  try {
    body();
  } catch (const RequestError& error) {
    EXPECT_FALSE(error.message.empty());
    return error.status;
  }
  return 200;
}

TEST(RequestFields, FormAndJsonAreAlike) {
  for (const HttpRequest& request :
       {json(R"({"q": "a & b\u00e4", "alternatives": 2, "none": null})"),
        form("q=a+%26+b%C3%A4&alternatives=2&&x")}) {
    const RequestFields fields(request);
    bool is_array = true;
    EXPECT_EQ(fields.texts("q", 1, is_array), std::vector<std::string>{"a & b\u00e4"});
    EXPECT_FALSE(is_array);
    EXPECT_EQ(fields.integer("alternatives"), 2);
    EXPECT_FALSE(fields.text("none"));
    EXPECT_EQ(status_of([&] { fields.required("none"); }), 400);
  }
}

TEST(RequestFields, TheBodyWinsOverTheQuery) {
  for (HttpRequest request : {json(R"({"q": "a", "source": "en"})"), form("q=a&source=en")}) {
    request.query = "q=b&source=de&target=fr&alternatives=2";
    const RequestFields fields(request);
    bool is_array = true;
    EXPECT_EQ(fields.texts("q", 9, is_array), std::vector<std::string>{"a"});
    EXPECT_FALSE(is_array);
    EXPECT_EQ(fields.text("source"), "en");
    EXPECT_EQ(fields.text("target"), "fr");
    EXPECT_EQ(fields.integer("alternatives"), 2);
  }
  HttpRequest bare;
  bare.query = "q=a&q=b";
  bool is_array = false;
  EXPECT_EQ(RequestFields(bare).texts("q", 9, is_array), (std::vector<std::string>{"a", "b"}));
}

TEST(RequestFields, LargeIntegers) {
  for (const HttpRequest& request :
       {json(R"({"a": 3000000000, "b": -9223372036854775808, "c": 9223372036854775808})"),
        json(R"({"a": "3000000000", "b": "-9223372036854775808", "c": "9223372036854775808"})")}) {
    const RequestFields fields(request);
    EXPECT_EQ(fields.integer("a"), 3'000'000'000);
    EXPECT_EQ(fields.integer("b"), std::numeric_limits<long long>::min());
    EXPECT_EQ(status_of([&] { fields.integer("c"); }), 400);
  }
}

TEST(RequestFields, WrongBodiesAreRefused) {
  for (const char* body : {"", "{", "[1]", "\"q\"", "{\"q\": \"\xff\"}", "{\"q\": \"\\ud800\"}",
                           "{} {}", "nonsense", "{\"a\": [[[[[[[[[[[[1]]]]]]]]]]]]}"})
    EXPECT_EQ(status_of([&] { RequestFields(json(body)); }), 400) << body;
  HttpRequest other = form("q=a");
  other.content_type = "text/xml";
  EXPECT_EQ(status_of([&] { RequestFields fields(other); }), 415);
  EXPECT_EQ(status_of([&] { RequestFields(json(std::string(200'000, '['))); }), 400);
}

TEST(RequestFields, ContentTypesAreTold) {
  const std::string body = R"({"q": "a"})";
  HttpRequest untyped = json(" \n" + body), plain = json(body), other;
  untyped.content_type = "";
  plain.content_type = "text/plain";
  other.body = "q=a";
  bool is_array = true;
  EXPECT_EQ(RequestFields(untyped).texts("q", 1, is_array), std::vector<std::string>{"a"});
  for (const HttpRequest& request : {form("\r\n" + body), plain, other}) {
    try {
      RequestFields fields(request);
      ADD_FAILURE() << request.content_type;
    } catch (const RequestError& error) {
      EXPECT_EQ(error.status, 415);
      EXPECT_NE(error.message.find("'Content-Type: application/json'"), std::string::npos)
          << error.message;
    }
  }
}

TEST(RequestFields, WrongTypesAreRefused) {
  const RequestFields fields(json(R"({"a": 1, "b": ["x", 2], "c": 1.5, "d": "x", "e": {}})"));
  bool is_array = false;
  EXPECT_EQ(status_of([&] { fields.text("a"); }), 400);
  EXPECT_EQ(status_of([&] { fields.texts("a", 9, is_array); }), 400);
  EXPECT_EQ(status_of([&] { fields.texts("b", 9, is_array); }), 400);
  EXPECT_EQ(status_of([&] { fields.texts("b", 1, is_array); }), 400);
  EXPECT_EQ(status_of([&] { fields.texts("z", 1, is_array); }), 400);
  EXPECT_EQ(status_of([&] { fields.integer("c"); }), 400);
  EXPECT_EQ(status_of([&] { fields.integer("d"); }), 400);
  EXPECT_EQ(status_of([&] { fields.integer("e"); }), 400);
}

TEST(RequestFields, FormsAreRepaired) {
  const RequestFields fields(form("q=%ff&q=%zz%4&%=1"));
  bool is_array = false;
  EXPECT_EQ(fields.texts("q", 9, is_array), (std::vector<std::string>{"\ufffd", "%zz%4"}));
  EXPECT_TRUE(is_array);
}

class TranslateCalls : public testing::Test {
 protected:
  const serve::ModelMap models{{{7, {"en", "de"}, "a"}, {8, {"de", "fr"}, "b"}}};
  static Limits some() {
    Limits limits;
    limits.max_alternatives = 3;
    return limits;
  }
  Limits limits = some();
  int status(const std::string& body) {
    return status_of([&] { TranslateCall(RequestFields(json(body)), models, limits, true); });
  }
};

TEST_F(TranslateCalls, EachTextIsADocument) {
  const TranslateCall call(
      RequestFields(json(R"({"q": ["A man sat. He slept.", "", "It was late.\n\nIt rained."],
                             "source": "en", "target": "de"})")),
      models, limits, true);
  EXPECT_EQ(call.sentences().size(), 4u);
  EXPECT_EQ(call.documents(), (std::vector<std::size_t>{0, 0, 2, 2}));
}

TEST_F(TranslateCalls, LimitsAndLanguages) {
  EXPECT_EQ(status(R"({"q": "a", "source": "en", "target": "de"})"), 200);
  EXPECT_EQ(status(R"({"q": "a", "source": "en", "target": "fr"})"), 200);
  EXPECT_EQ(status(R"({"q": "a", "source": "fr", "target": "en"})"), 400);
  EXPECT_EQ(status(R"({"q": "a", "source": "xx", "target": "en"})"), 400);
  EXPECT_EQ(status(R"({"q": "a", "source": "en", "target": "xx"})"), 400);
  EXPECT_EQ(status(R"({"q": "a", "source": "en"})"), 400);
  EXPECT_EQ(status(R"({"source": "en", "target": "de"})"), 400);
  EXPECT_EQ(status(R"({"q": "a", "source": "en", "target": "de", "format": "pdf"})"), 400);
  EXPECT_EQ(status(R"({"q": "a", "source": "en", "target": "de", "alternatives": 10000})"), 400);
  EXPECT_EQ(status(R"({"q": "a", "source": "en", "target": "de", "alternatives": -1})"), 400);
  limits.max_characters = 3;
  EXPECT_EQ(status(R"({"q": ["a", "b"], "source": "en", "target": "de"})"), 200);
  EXPECT_EQ(status(R"({"q": ["ab", "cd"], "source": "en", "target": "de"})"), 400);
  limits = some();
  limits.max_queue = 2;
  EXPECT_EQ(status(R"({"q": "Aa. Bb. Cc.", "source": "en", "target": "de"})"), 413);
}

TEST_F(TranslateCalls, ShapesOfAnswers) {
  const auto response = [&](const std::string& body, std::vector<serve::Hypotheses> translations) {
    return TranslateCall(RequestFields(json(body)), models, limits, true)
        .response(translations)
        .dump();
  };
  EXPECT_EQ(response(R"({"q": "Aa. Bb.", "source": "en", "target": "de"})", {{"X."}, {"Y."}}),
            R"({"translatedText":"X. Y."})");
  EXPECT_EQ(response(R"({"q": ["A.", ""], "source": "en", "target": "de"})", {{"X."}}),
            R"({"translatedText":["X.",""]})");
  EXPECT_EQ(response(R"({"q": "A.", "source": "en", "target": "de", "alternatives": 2})",
                     {{"X.", "Y.", "X.", "Z."}}),
            R"({"alternatives":["Y."],"translatedText":"X."})");
  EXPECT_EQ(response(R"({"q": ["A."], "source": "en", "target": "de", "alternatives": "1"})",
                     {{"X.", "Y."}}),
            R"({"alternatives":[["Y."]],"translatedText":["X."]})");
  EXPECT_EQ(response(R"({"q": "A.", "source": "en", "target": "en"})", {}),
            R"({"translatedText":"A."})");
  EXPECT_EQ(response(R"({"q": [], "source": "en", "target": "de"})", {}),
            R"({"translatedText":[]})");
  if (!serve::can_detect()) return;
  EXPECT_EQ(response(R"({"q": "", "source": "auto", "target": "fr"})", {}),
            R"({"detectedLanguage":{"confidence":0.0,"language":"de"},"translatedText":""})");
  EXPECT_EQ(response(R"({"q": "", "source": "auto", "target": "de"})", {}),
            R"({"detectedLanguage":{"confidence":0.0,"language":"en"},"translatedText":""})");
}

TEST(RateLimit, BucketsFillWithTime) {
  using namespace std::chrono_literals;
  RateLimit limit(2);
  const RateLimit::Clock::time_point start{};
  EXPECT_EQ(limit.take("a", start), 0);
  EXPECT_EQ(limit.take("a", start), 0);
  EXPECT_EQ(limit.take("a", start), 30);
  EXPECT_EQ(limit.take("b", start), 0);
  EXPECT_EQ(limit.take("a", start + 20s), 10);
  EXPECT_EQ(limit.take("a", start + 30s), 0);
  EXPECT_EQ(limit.take("a", start + 30s), 30);
  for (int i = 0; i < 30000; ++i) limit.take(std::to_string(i), start + 31s);
  EXPECT_LE(limit.clients(), 10'000u);
  EXPECT_EQ(RateLimit(0).take("a", start), 0);
}

}  // namespace
}  // namespace nmt::http
