#include "serve/html.h"

#include "serve/document.h"
#include "serve/html_text.h"
#include "tests/fuzz/target.h"
#include "text/utf8.h"

#include <stdexcept>

// HTML: its parts in order are the HTML, and the translation by what was there keeps the markup.
void nmt::fuzz::html(std::string_view bytes) {
  using namespace nmt::serve;
  std::string joined;
  std::size_t markup = 0;
  for (const HtmlPart& part : split_html(bytes)) {
    joined += part.source;
    if (!part.is_text) {
      markup += part.source.size();
      continue;
    }
    HtmlReferences unresolved;
    const std::string text = decode_html(part.source, &unresolved);
    if (decode_html(encode_html(text, unresolved)) != text)
      throw std::logic_error("the text of an HTML text changed");
  }
  if (joined != bytes) throw std::logic_error("the parts of an HTML text are not the text");
  std::string valid;
  if (is_valid_utf8(bytes))
    valid = bytes;
  else
    repair_utf8(bytes, valid);
  for (const TextFormat format : {TextFormat::html, TextFormat::text}) {
    const Document document(valid, format, "en", 50);
    std::vector<Hypotheses> translations;
    for (const std::string& sentence : document.sentences()) {
      if (sentence.empty()) throw std::logic_error("an empty sentence");
      translations.push_back({sentence});
    }
    const std::string same = document.join(translations, 0);
    if (format == TextFormat::text && same != valid)
      throw std::logic_error("the pieces of a text are not the text");
    if (format == TextFormat::html && valid == bytes && same.size() < markup)
      throw std::logic_error("markup was lost");
  }
}

NMT_FUZZ_TARGET(html)
