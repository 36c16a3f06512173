#include "http/translate_call.h"

#include "serve/html.h"
#include "serve/html_text.h"
#include "text/utf8.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace nmt::http {
namespace {

[[noreturn]] void refuse(const std::string& message, int status = 400) {
  throw RequestError{status, message};
}

// A code as the client wrote it, for a message.
std::string shown(const std::string& code) {
  return code.substr(0, 32);
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

std::vector<serve::Detection> detect_texts(const std::vector<std::string>& texts,
                                           serve::TextFormat format,
                                           const std::vector<std::string>& candidates) {
  if (!serve::can_detect())
    refuse("this server was built without language detection; name the source language", 501);
  std::string all;
  for (const std::string& text : texts) {
    if (format == serve::TextFormat::html) {
      for (const serve::HtmlPart& part : serve::split_html(text))
        if (part.is_text) all += serve::decode_html(part.source) + " ";
    } else {
      all += text + "\n";
    }
  }
  return serve::detect_language(all, candidates);
}

std::size_t checked_characters(std::span<const std::string> texts, const Limits& limits) {
  std::size_t characters = 0;
  for (const std::string& text : texts) characters += count_characters(text);
  if (limits.max_characters > 0 && characters > static_cast<std::size_t>(limits.max_characters))
    refuse(fmt::format("Invalid request: {} characters exceed the text limit of {}", characters,
                       limits.max_characters));
  return characters;
}

TranslateCall::TranslateCall(const RequestFields& fields, const serve::ModelMap& models,
                             const Limits& limits, bool keeps_marked) {
  originals_ = fields.texts("q", static_cast<std::size_t>(limits.max_texts), is_array_);
  source_ = fields.required("source");
  target_ = fields.required("target");
  const std::string format = fields.text("format").value_or("text");
  if (format != "text" && format != "html")
    refuse(fmt::format("format {} is not supported; expected text or html", shown(format)));
  format_ = format == "html" ? serve::TextFormat::html : serve::TextFormat::text;
  const long long alternatives = fields.integer("alternatives").value_or(0);
  if (alternatives < 0 || alternatives > limits.max_alternatives)
    refuse(fmt::format("alternatives is {}; this server gives 0 to {}", alternatives,
                       limits.max_alternatives));
  alternatives_ = static_cast<int>(alternatives);
  segments_ = fields.flag("segments");
  if (segments_ && format_ == serve::TextFormat::html)
    refuse("segments are for texts, not for html");
  characters_ = checked_characters(originals_, limits);
  if (source_ == "auto") detect_source(models);
  if (!contains(models.languages(), source_)) refuse(shown(source_) + " is not supported");
  if (!contains(models.languages(), target_)) refuse(shown(target_) + " is not supported");
  if (source_ == target_) return;
  route_ = models.route(source_, target_);
  if (route_.empty())
    refuse(fmt::format("{} ({}) is not available as a target language from {} ({})",
                       serve::language_name(target_), target_, serve::language_name(source_),
                       source_));
  cut(limits, keeps_marked);
}

void TranslateCall::detect_source(const serve::ModelMap& models) {
  const std::vector<serve::Detection> found = detect_texts(originals_, format_, models.sources());
  if (found.empty()) refuse("no language of this server was recognized");
  detected_ = found.front();
  if (detected_->confidence == 0)  // a guess, which should be one that can be translated
    for (const std::string& source : models.sources())
      if (source != target_ && !models.route(source, target_).empty()) {
        detected_->language = source;
        break;
      }
  source_ = detected_->language;
}

void TranslateCall::cut(const Limits& limits, bool keeps_marked) {
  for (const std::string& text : originals_) {
    documents_.emplace_back(text, format_, source_, static_cast<std::size_t>(limits.max_sentence),
                            keeps_marked);
    const std::vector<std::string>& sentences = documents_.back().sentences();
    first_sentences_.insert(first_sentences_.end(), sentences.size(), sentences_.size());
    sentences_.insert(sentences_.end(), sentences.begin(), sentences.end());
  }
  if (sentences_.size() > static_cast<std::size_t>(limits.max_queue))
    refuse(fmt::format("the request has {} sentences; this server takes at most {}",
                       sentences_.size(), limits.max_queue),
           413);
}

nlohmann::ordered_json TranslateCall::segments(
    const serve::Document& document, std::span<const serve::Hypotheses> translations) const {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  std::size_t next = 0;
  for (const serve::Document::Piece& piece : document.pieces()) {
    if (!piece.sentence) {
      list.push_back({{"text", piece.text}});
      continue;
    }
    Json hypotheses = Json::array();
    std::vector<std::string> seen;
    for (const serve::Hypothesis& hypothesis : translations[next]) {
      if (hypotheses.size() > static_cast<std::size_t>(alternatives_)) break;
      if (contains(seen, hypothesis.text)) continue;
      seen.push_back(hypothesis.text);
      hypotheses.push_back({{"text", hypothesis.text}, {"alignment", hypothesis.alignment}});
    }
    list.push_back({{"source", document.sentences()[next++]}, {"translations", hypotheses}});
  }
  return list;
}

nlohmann::ordered_json TranslateCall::response(
    std::span<const serve::Hypotheses> translations) const {
  using Json = nlohmann::ordered_json;
  Json alternatives = Json::array(), detected = Json::array(), translated = Json::array(),
       segmented = Json::array();
  std::size_t first = 0;
  for (std::size_t i = 0; i < originals_.size(); ++i) {
    std::vector<std::string> results{originals_[i]};
    Json parts = Json::array({{{"text", originals_[i]}}});
    if (!documents_.empty()) {
      const std::size_t count = documents_[i].sentences().size();
      const std::span<const serve::Hypotheses> part = translations.subspan(first, count);
      first += count;
      if (segments_) parts = segments(documents_[i], part);
      results.clear();
      std::size_t most = 1;
      for (const serve::Hypotheses& hypotheses : part) most = std::max(most, hypotheses.size());
      most = std::min(most, static_cast<std::size_t>(alternatives_) + 1);
      for (std::size_t k = 0; k < most; ++k) {
        std::string text = documents_[i].join(part, k);
        if (!contains(results, text)) results.push_back(std::move(text));
      }
    }
    translated.push_back(results.front());
    segmented.push_back(std::move(parts));
    alternatives.push_back(Json(std::vector<std::string>(results.begin() + 1, results.end())));
    if (detected_)
      detected.push_back(
          {{"confidence", detected_->confidence}, {"language", detected_->language}});
  }
  const auto shape = [&](Json& array) { return is_array_ ? array : array.at(0); };
  Json response = Json::object();
  if (alternatives_ > 0) response["alternatives"] = shape(alternatives);
  if (detected_ && !originals_.empty()) response["detectedLanguage"] = shape(detected);
  if (segments_) response["segments"] = shape(segmented);
  response["translatedText"] = shape(translated);
  return response;
}

}  // namespace nmt::http
