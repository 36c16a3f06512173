#include "serve/document.h"

#include "serve/html.h"
#include "serve/marked_spans.h"
#include "serve/sentences.h"

#include <algorithm>
#include <utility>

namespace nmt::serve {
namespace {

bool is_open(std::string_view text) {
  const std::size_t open = text.rfind(open_marker);
  return open != std::string_view::npos && text.find(close_marker, open) == std::string_view::npos;
}

void append(std::vector<TextPart>& parts, TextPart part) {
  if (part.translate)
    parts.push_back(std::move(part));
  else
    append_verbatim(parts, part.text);
}

// Moves what `next` has up to the end of its close marker at `close` to `part`, and returns the
// parts of the rest.
std::vector<TextPart> cut_behind_span(TextPart& part, std::string_view next, std::size_t close) {
  const std::size_t end = close + close_marker.size();
  part.text += next.substr(0, end);
  std::vector<TextPart> rest;
  append_sentence(rest, next.substr(end));
  return rest;
}

// Joins the parts of a marked span that were split. Spans whose parts also begin the next one are
// joined up to about max_characters, and separated behind a close marker there.
std::vector<TextPart> with_whole_spans(std::vector<TextPart> parts, std::size_t max_characters) {
  std::size_t last_close = 0;  // behind the last part with a close marker
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].text.find(close_marker) != std::string::npos) last_close = i + 1;
  std::vector<TextPart> result;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    TextPart part = std::move(parts[i]);
    if (part.text.find(open_marker) == std::string::npos) {
      append(result, std::move(part));
      continue;
    }
    std::vector<TextPart> rest;
    for (bool open = is_open(part.text); open && i + 1 < last_close;) {
      const std::string& next = parts[++i].text;
      const std::size_t close = next.find(close_marker);
      if (close != std::string::npos && part.text.size() > max_characters) {
        rest = cut_behind_span(part, next, close);
        break;
      }
      open = is_open(next) || close == std::string::npos;
      part.text += next;
    }
    part.translate = true;
    append(result, std::move(part));
    if (rest.empty()) continue;
    parts[i] = std::move(rest.back());  // it may begin another span
    --i;
    rest.pop_back();
    for (TextPart& each : rest) append(result, std::move(each));
  }
  return result;
}

// Cuts sentences at marked spans: in the text of an HTML document, the markers are text.
std::vector<TextPart> with_literal_markers(std::vector<TextPart> parts) {
  std::vector<TextPart> result;
  for (TextPart& part : parts) {
    const std::vector<TextSpan> spans =
        part.translate ? marked_spans(part.text) : std::vector<TextSpan>();
    if (spans.empty()) {
      append(result, std::move(part));
      continue;
    }
    const std::string_view text = part.text;
    std::size_t at = 0;
    for (const TextSpan& span : spans) {
      append_sentence(result, text.substr(at, span.begin - at));
      append_verbatim(result, open_marker);
      append_sentence(result, span.text);
      append_verbatim(result, close_marker);
      at = span.end;
    }
    append_sentence(result, text.substr(at));
  }
  return result;
}

bool is_html_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

// As in browsers, one line end within a text, and the white space around it, is a space. Blank
// lines stay, so that plain text sent as HTML keeps its paragraphs, and so does the white space at
// both ends.
std::string unwrapped(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    if (!is_html_space(text[at])) {
      result += text[at++];
      continue;
    }
    std::size_t end = at;
    int lines = 0;
    for (; end < text.size() && is_html_space(text[end]); ++end)
      lines += text[end] == '\n' || (text[end] == '\r' && !text.substr(end + 1).starts_with('\n'));
    if (lines == 1 && at > 0 && end < text.size())
      result += ' ';
    else
      result += text.substr(at, end - at);
    at = end;
  }
  return result;
}

}  // namespace

Document::Document(std::string_view text, TextFormat format, const std::string& language,
                   std::size_t max_characters, bool keeps_marked) {
  if (format == TextFormat::html)
    add_html(text, language, max_characters, keeps_marked);
  else
    add_text(text, language, max_characters, keeps_marked);
}

void Document::add_text(std::string_view text, const std::string& language,
                        std::size_t max_characters, bool keeps_marked) {
  std::vector<TextPart> parts = split_sentences(text, language, max_characters);
  if (keeps_marked) parts = with_whole_spans(std::move(parts), max_characters);
  for (TextPart& part : parts) {
    if (part.translate) sentences_.push_back(part.text);
    pieces_.push_back({part.translate ? "" : std::move(part.text), part.translate, nullptr});
  }
}

void Document::add_html(std::string_view html, const std::string& language,
                        std::size_t max_characters, bool keeps_marked) {
  for (HtmlPart& part : split_html(html)) {
    std::vector<TextPart> texts;
    const auto references = std::make_shared<HtmlReferences>();
    if (part.is_text) {
      const std::string text = decode_html(part.source, references.get());
      texts = split_sentences(part.keeps_lines ? text : unwrapped(text), language, max_characters);
      if (keeps_marked) texts = with_literal_markers(std::move(texts));
    }
    if (std::none_of(texts.begin(), texts.end(), [](const TextPart& t) { return t.translate; })) {
      pieces_.push_back({std::move(part.source), false, nullptr});
      continue;
    }
    for (TextPart& text : texts) {
      pieces_.push_back(
          {text.translate ? "" : encode_html(text.text, *references), text.translate, references});
      if (text.translate) sentences_.push_back(std::move(text.text));
    }
  }
}

std::string Document::join(std::span<const Hypotheses> translations, std::size_t k) const {
  std::string text;
  std::size_t next = 0;
  for (const Piece& piece : pieces_) {
    if (!piece.sentence) {
      text += piece.text;
      continue;
    }
    const Hypotheses& hypotheses = translations[next++];
    const std::string& chosen = (k < hypotheses.size() ? hypotheses[k] : hypotheses.front()).text;
    text += piece.references ? encode_html(chosen, *piece.references) : chosen;
  }
  return text;
}

}  // namespace nmt::serve
