#pragma once

#include "app/translate/translate.h"
#include "library/shared_models.h"
#include "nmt/translator.h"
#include "text/document_context.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nmt {

struct Translator::Impl {
  /// Loads models.
  explicit Impl(const app::TranslateSpec& spec);
  /// With loaded models.
  Impl(const app::TranslateSpec& spec, std::shared_ptr<library::SharedModels> models);

  /// A document that begins, for the lines of a call.
  DocumentContext document() {
    return DocumentContext(open.translator().options().context_sentences);
  }
  /// Translates at most a window of lines, the next ones of `document`.
  std::vector<Translation> translate(std::span<const std::string> lines, DocumentContext& document,
                                     std::int64_t first, const ShouldStop& stop);

  app::OpenTranslator open;
  app::JobInputs inputs;
  std::shared_ptr<library::SharedModels> shared;
};

namespace library {

/// A listener for batches that throws Error (interrupted) when `stop` returns true; empty if `stop`
/// is.
std::function<void(std::int64_t)> stop_between_batches(const ShouldStop& stop);
/// The public form of the weights [T,S] of T rows.
Attention public_attention(std::vector<float> weights, std::size_t rows);

}  // namespace library
}  // namespace nmt
