#pragma once

#include "core/nlohmann.h"
#include "http/request_fields.h"
#include "http/serve.h"
#include "serve/document.h"
#include "serve/languages.h"
#include "serve/model_map.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nmt::http {

/// Characters of all texts. Throws RequestError: more than the limit.
std::size_t checked_characters(std::span<const std::string> texts, const Limits& limits);

/// A request to /translate: checked, cut into sentences, and put together again.
class TranslateCall {
 public:
  /// Throws RequestError: a parameter that is missing, of the wrong type or over a limit, or
  /// languages that no model translates.
  TranslateCall(const RequestFields& fields, const serve::ModelMap& models, const Limits& limits,
                bool keeps_marked);

  /// Of all texts, in order; none where there is nothing to translate.
  const std::vector<std::string>& sentences() const { return sentences_; }
  /// For each, the index of the first sentence of its text.
  const std::vector<std::size_t>& documents() const { return first_sentences_; }
  const std::vector<int>& route() const { return route_; }
  /// Of the last model of the route. Words of a third language are no alignment, so a longer route
  /// has none.
  serve::Want want() const {
    if (segments_ && route_.size() == 1) return serve::Want::aligned;
    return alternatives_ > 0 ? serve::Want::list : serve::Want::best;
  }
  std::size_t texts() const { return originals_.size(); }
  std::size_t characters() const { return characters_; }
  const std::string& source() const { return source_; }
  const std::string& target() const { return target_; }

  /// The JSON of the answer, from the translations of sentences().
  nlohmann::ordered_json response(std::span<const serve::Hypotheses> translations) const;

 private:
  void detect_source(const serve::ModelMap& models);
  void cut(const Limits& limits, bool keeps_marked);
  nlohmann::ordered_json segments(const serve::Document& document,
                                  std::span<const serve::Hypotheses> translations) const;

  std::vector<std::string> originals_;
  bool is_array_ = false;
  serve::TextFormat format_ = serve::TextFormat::text;
  int alternatives_ = 0;
  bool segments_ = false;  // are part of the answer
  std::size_t characters_ = 0;
  std::string source_, target_;
  std::optional<serve::Detection> detected_;  // where the source was "auto"
  std::vector<int> route_;
  std::vector<serve::Document> documents_;  // none where the texts stay as they are
  std::vector<std::string> sentences_;
  std::vector<std::size_t> first_sentences_;
};

/// The languages of texts together, most probable first. Throws RequestError (501): this build has
/// no detector.
std::vector<serve::Detection> detect_texts(const std::vector<std::string>& texts,
                                           serve::TextFormat format,
                                           const std::vector<std::string>& candidates);

}  // namespace nmt::http
