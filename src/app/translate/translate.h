#pragma once

#include "app/ensemble.h"
#include "app/translate/translate_spec.h"
#include "search/batch_translator.h"
#include "search/beam/shortlist.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace nmt::app {

/// A translator with all that it works with: the device, the models there, their vocabularies and
/// the shortlist. One thread uses it.
class OpenTranslator {
 public:
  /// `title` begins the first log line. Files named in the spec for translate() are not looked at.
  /// Errors: as check(TranslateSpec), Inference and Shortlist::load.
  explicit OpenTranslator(const TranslateSpec& spec, const std::string& title = "nmt");
  OpenTranslator(const OpenTranslator&) = delete;
  OpenTranslator& operator=(const OpenTranslator&) = delete;

  /// For lines at hand (BatchTranslator::translate) and for streams of lines (translate_stream).
  BatchTranslator& translator() { return *translator_; }
  /// Called after each batch with the number of sentences it had.
  void on_batch(std::function<void(std::int64_t sentences)> listener) {
    on_batch_ = std::move(listener);
  }
  Inference& inference() { return inference_; }

 private:
  Inference inference_;
  std::optional<Shortlist> shortlist_;
  std::function<void(std::int64_t)> on_batch_;
  std::optional<BatchTranslator> translator_;
};

struct TranslateResult {
  std::int64_t lines = 0;  ///< read, and as many written
  BatchTranslator::Statistics statistics;
};

/// Translates the lines of spec.input, or spec.text, to spec.output, with progress and speed in the
/// log. A pipe or terminal gets its answers before more is waited for. Errors: as OpenTranslator,
/// LineInput, LineWriter and translate_stream; a wrong file name is told before a model is opened.
TranslateResult translate(const TranslateSpec& spec);

}  // namespace nmt::app
