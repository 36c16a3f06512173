#include "http/request_fields.h"
#include "http/translate_call.h"
#include "tests/fuzz/target.h"

// A request to /translate: the content type, a line end, and the body. A request that is accepted
// gives the segments of its texts back.
void nmt::fuzz::http_body(std::string_view bytes) {
  using namespace nmt::http;
  static const serve::ModelMap models({{0, {"en", "de"}, "a"}, {1, {"de", "fr"}, "b"}});
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  HttpRequest request;
  request.content_type = std::string(bytes.substr(0, end));
  request.body = std::string(bytes.substr(std::min(end + 1, bytes.size())));
  Limits limits;
  limits.max_texts = 100;
  limits.max_alternatives = 3;
  try {
    const RequestFields fields(request);
    fields.text("api_key");
    const TranslateCall call(fields, models, limits, true);
    std::vector<serve::Hypotheses> translations;
    for (const std::string& sentence : call.sentences()) translations.push_back({sentence});
    const auto response = call.response(translations);
    if (!response.contains("translatedText")) throw std::logic_error("no translation");
    response.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  } catch (const RequestError& error) {
    if (error.status < 400 || error.message.empty())
      throw std::logic_error("an error without text");
  }
}

NMT_FUZZ_TARGET(http_body)
