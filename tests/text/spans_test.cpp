#include "text/spans.h"

#include "core/error.h"
#include "text/glossary.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

constexpr SpanKinds everything{true, true, true, true, true};

std::vector<std::string> texts(const std::string& line, const SpanKinds& kinds = everything) {
  std::vector<std::string> found;
  for (const TextSpan& span : find_spans(line, kinds)) {
    if (span.kind != SpanKind::marked) {
      EXPECT_EQ(line.substr(span.begin, span.end - span.begin), span.text);
    }
    found.push_back(span.text);
  }
  return found;
}

using Texts = std::vector<std::string>;

TEST(Spans, PlaceholdersOfUsualFormats) {
  EXPECT_EQ(texts("Hi {name}, {{ count }} of ${total}: {0:.2f} {}"),
            (Texts{"{name}", "{{ count }}", "${total}", "{0:.2f}", "{}"}));
  EXPECT_EQ(texts("%s has %d of %1$s, %(name)s %5.2f %-3ld %name%"),
            (Texts{"%s", "%d", "%1$s", "%(name)s", "%5.2f", "%-3ld", "%name%"}));
}

TEST(Spans, PlainTextHasNone) {
  for (const char* line : {"a 100% sure thing", "50 % sicher", "{ not one }", "{", "}", "}}{", "%",
                           "5%d", "100 %", "%sure", "a < b > c", "{a\tb}", "%(", "${"})
    EXPECT_EQ(texts(line, {.placeholders = true}), Texts{}) << line;
}

TEST(Spans, AddressesEndBeforePunctuation) {
  EXPECT_EQ(texts("See https://a.org/b?c=1&d=2#e, (http://x.de/(y)) or www.z.com."),
            (Texts{"https://a.org/b?c=1&d=2#e", "http://x.de/(y)", "www.z.com"}));
  EXPECT_EQ(texts("Https://a.org/B HTTP://X.DE/ Www.z.com wwx.z.com", {.urls = true}),
            (Texts{"Https://a.org/B", "HTTP://X.DE/", "Www.z.com"}));
  EXPECT_EQ(texts("Mail a.b+c@x-y.co.uk. Or <q@r.de>, not @home or me@here or a@b.",
                  {.urls = true, .emails = true}),
            (Texts{"a.b+c@x-y.co.uk", "q@r.de"}));
}

TEST(Spans, Numbers) {
  EXPECT_EQ(texts("1 of 1,000.50 on 2024-01-31 at 12:30, 7.", {.numbers = true}),
            (Texts{"1", "1,000.50", "2024-01-31", "12:30", "7"}));
  EXPECT_EQ(texts("3rd a4 v1 2x x_9", {.numbers = true}), Texts{});
  EXPECT_EQ(texts("50% and \xc3\xa9 5\xe5\x80\x8b", {.numbers = true}), (Texts{"50", "5"}));
}

TEST(Spans, MarkedSpansLoseTheirMarkers) {
  const std::string line = "a <keep>B C</keep> d <keep></keep> <keep>open";
  const std::vector<TextSpan> spans = find_spans(line, {.marked = true});
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0], (TextSpan{2, 18, SpanKind::marked, "B C"}));
  EXPECT_EQ(without_markers(line, spans), "a B C d  <keep>open");
}

TEST(Spans, LongHostileLinesAreQuick) {
  for (const char* part : {"<keep>", "{", "{{", "%(", "%a", "${", "http://", "a@", "1-", "a."}) {
    std::string line;
    while (line.size() < 300'000) line += part;
    find_spans(line, everything);
  }
}

TEST(Spans, CountsMustBeReached) {
  const std::vector<TextSpan> spans = find_spans("12 and 12 or %s", everything);
  EXPECT_TRUE(contains_all("12, %s, 12", spans));
  EXPECT_FALSE(contains_all("12, %s", spans));
  EXPECT_FALSE(contains_all("12, 120, %s", spans));
  EXPECT_FALSE(contains_all("12, 12, % s", spans));
  EXPECT_TRUE(contains_all("anything", {}));
}

TEST(Spans, MarkedTextAndTermsCountAsWholeWords) {
  const TextSpan term{0, 3, SpanKind::term, "ein"}, marked{4, 8, SpanKind::marked, "ein"};
  EXPECT_FALSE(contains_all("Mann mit einem Hut", {term}));
  EXPECT_FALSE(contains_all("kein Hut", {marked}));
  EXPECT_TRUE(contains_all("mit einem, ein", {term}));
  EXPECT_FALSE(contains_all("nur ein Hut", {term, marked}));
  EXPECT_TRUE(contains_all("ein (ein)", {term, marked}));
}

TEST(Spans, LettersOfOtherAlphabets) {
  EXPECT_EQ(texts("Mail j\u00f6rg@x.de now, \u00e9.b@c.fr", {.emails = true}),
            (Texts{"j\u00f6rg@x.de", "\u00e9.b@c.fr"}));
  EXPECT_EQ(texts("\u9023\u7d61a@x.de", {.emails = true}), Texts{"a@x.de"});  // without spaces
  EXPECT_EQ(texts("La 1\u00e8re fois, Men\u00fc3, 5\u500b", {.numbers = true}), Texts{"5"});
  EXPECT_EQ(
      texts("\u201chttp://x.de/a\u201d http://x.de/b\u3002 \u00abwww.z.fr\u00bb http://x.de/\u00c4",
            {.urls = true}),
      (Texts{"http://x.de/a", "http://x.de/b", "www.z.fr", "http://x.de/\u00c4"}));
  // The second byte of the letter and the "k" are not a quote.
  EXPECT_EQ(texts("http://x.de/\u00c2k", {.urls = true}), Texts{"http://x.de/\u00c2k"});
}

TEST(Spans, AnOccurrenceServesOneSpan) {
  const std::vector<TextSpan> marked = find_spans("<keep>%s</keep> and %s", everything);
  EXPECT_FALSE(contains_all("nur %s", marked));
  EXPECT_TRUE(contains_all("%s und %s", marked));
  const TextSpan house{0, 5, SpanKind::term, "Haus"}, red{6, 15, SpanKind::term, "rotes Haus"};
  EXPECT_FALSE(contains_all("ein rotes Haus", {house, red}));
  EXPECT_TRUE(contains_all("ein rotes Haus und ein Haus", {house, red}));
  EXPECT_TRUE(contains_all("ein Haus und ein rotes Haus", {house, red}));
  const std::vector<TextSpan> number = find_spans("<keep>page 12</keep> of 12", everything);
  EXPECT_FALSE(contains_all("page 12", number));
  EXPECT_TRUE(contains_all("page 12 / 12", number));
  // The number is only the second one; the marked text may be either.
  const std::vector<TextSpan> twelve = find_spans("<keep>12</keep> or 12", everything);
  EXPECT_TRUE(contains_all("12a 12 (12)", twelve));
  EXPECT_TRUE(contains_all("1/12, 12", twelve));
}

TEST(Spans, WholeWordsBehindPartsOfWords) {
  const TextSpan term{0, 3, SpanKind::term, "a a"}, long_term{0, 5, SpanKind::term, "a a a"};
  EXPECT_TRUE(contains_all("ba a a", {term}));
  EXPECT_FALSE(contains_all("a a a", {term, term}));
  EXPECT_TRUE(contains_all("a a a a", {term, term}));
  EXPECT_TRUE(contains_all("a a a a a", {term, long_term}));
  EXPECT_FALSE(contains_all("a a a a", {term, long_term}));
}

TEST(Spans, LongHostileTermsAreQuick) {
  const auto repeated = [](std::string_view part) {
    std::string text;
    while (text.size() < 400'000) text += part;
    return text;
  };
  for (const auto& [part, behind] : {std::pair("a", ""), {"a", "b"}, {"ab ", "a"}, {"a ", "b"}}) {
    const std::string text = repeated(part);
    const TextSpan term{0, 1, SpanKind::term, text.substr(0, text.size() / 2 / 6 * 6) + behind};
    EXPECT_FALSE(contains_all(text, {term, term, term}));
  }
}

TEST(Spans, PunctuationOfOtherScriptsIsNoPartOfAWord) {
  EXPECT_EQ(texts("\u0935\u0930\u094d\u0937 2024\u0964", {.numbers = true}), Texts{"2024"});
  EXPECT_EQ(texts("7\u060c 8\u061f 9\u06d4 10\u055d 5\u066a", {.numbers = true}),
            (Texts{"7", "8", "9", "10", "5"}));
  EXPECT_EQ(texts("50\u09f3 3\u00d74 2\u0939", {.numbers = true}), (Texts{"50", "3", "4"}));
  EXPECT_EQ(texts("\u060ca@x.de", {.emails = true}), Texts{"a@x.de"});
  const Glossary glossary = Glossary::from_lines({"\u0936\u092c\u094d\u0926\tWort"}, "test");
  std::vector<TextSpan> spans;
  glossary.add_terms("\u092f\u0939 \u0936\u092c\u094d\u0926\u0964", spans);
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0], (TextSpan{7, 19, SpanKind::term, "Wort"}));
  spans.clear();
  glossary.add_terms("\u0936\u092c\u094d\u0926\u094b\u0902", spans);  // a longer word
  EXPECT_TRUE(spans.empty());
}

TEST(Spans, AddressesEndBeforePunctuationOfOtherScripts) {
  const SpanKinds urls{.urls = true};
  for (const char* space : {"\u00a0", "\u2003", "\u202f", "\u200b", "\u0085", " ", "\t"})
    EXPECT_EQ(texts(std::string("http://x.de/a") + space + "b", urls), Texts{"http://x.de/a"});
  for (const char* mark : {"\u060c", "\u0964", "\u2026", "\u06d4", "\u061f", "\u2013", "\u203a",
                           ".\u2026!", "\U00011047", "\u060c\u00a0", "\u0964."})
    EXPECT_EQ(texts(std::string("http://x.de/\u00c4") + mark + " b", urls),
              Texts{"http://x.de/\u00c4"})
        << mark;
  EXPECT_EQ(texts("http://x.de/a\u2013b www.x.de/\u2026/c", urls),
            (Texts{"http://x.de/a\u2013b", "www.x.de/\u2026/c"}));
  EXPECT_EQ(texts("http://\u2026 www.\u0964", urls), Texts{});
}

TEST(Spans, WholeWords) {
  EXPECT_TRUE(is_whole_word("a cat", 2, 5));
  EXPECT_FALSE(is_whole_word("a cats", 2, 5));
  EXPECT_FALSE(
      is_whole_word("\xc3\xa4"
                    "cat",
                    2, 5));  // "äcat"
  EXPECT_TRUE(is_whole_word("(cat)", 1, 4));
  EXPECT_TRUE(is_whole_word("\xe5\x80\x8b\xe5\x80\x8b", 0, 3));
}

TEST(Glossary, LongestWholeWords) {
  const Glossary glossary =
      Glossary::from_lines({"New York\tNeu-York", "New\tNeu", "", "cat"}, "test");
  EXPECT_EQ(glossary.size(), 3u);
  std::vector<TextSpan> spans;
  glossary.add_terms("New York, New, Newer cat", spans);
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0], (TextSpan{0, 8, SpanKind::term, "Neu-York"}));
  EXPECT_EQ(spans[1], (TextSpan{10, 13, SpanKind::term, "Neu"}));
  EXPECT_EQ(spans[2], (TextSpan{21, 24, SpanKind::term, "cat"}));
}

TEST(Glossary, LeavesOtherSpansAlone) {
  const Glossary glossary = Glossary::from_lines({"cat\tKatze", "of cat"}, "test");
  const std::string line = "a {cat} of {cat} cat";
  std::vector<TextSpan> spans = find_spans(line, everything);
  glossary.add_terms(line, spans);
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[1].kind, SpanKind::placeholder);
  EXPECT_EQ(spans[2], (TextSpan{17, 20, SpanKind::term, "Katze"}));
}

TEST(Glossary, WrongLinesAreNamed) {
  const auto message = [](const std::vector<std::string>& lines) {
    try {
      Glossary::from_lines(lines, "g.tsv");
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::data);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message({"a\tb", "a\tb\tc"}).find("g.tsv:2"), std::string::npos);
  EXPECT_NE(message({"\tb"}).find("g.tsv:1"), std::string::npos);
  EXPECT_NE(message({"a\t "}).find("g.tsv:1"), std::string::npos);
  EXPECT_NE(message({"a\tb", "a\tc"}).find("second target"), std::string::npos);
  EXPECT_NE(message({std::string(1001, 'x')}).find("1001 bytes"), std::string::npos);
  EXPECT_EQ(message({"a\tb", "a\tb"}), "");
}

}  // namespace
}  // namespace nmt
