#pragma once

#include "text/document_context.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nmt {

struct BatchTranslatorOptions;
struct LineTranslation;

/// Translates lines: the model itself (BatchTranslator), or with rules for the text around it
/// (TextTranslator). One thread at a time uses it.
class LineTranslator {
 public:
  virtual ~LineTranslator() = default;
  /// Translates lines of valid UTF-8; results are in the order of the lines. `first_line` is the
  /// number of lines[0], from 1, for warnings. `contexts`: as SourceEncoder::encode; callers that
  /// divide a text into several calls must give them (DocumentContext) if the model has context
  /// (BatchTranslatorOptions::context_sentences).
  virtual std::vector<LineTranslation> translate(
      std::span<const std::string> lines, std::int64_t first_line = 1,
      std::span<const ContextSentences> contexts = {}) = 0;
  /// Recommended number of lines per call of translate().
  virtual std::size_t window() const = 0;
  virtual const BatchTranslatorOptions& options() const = 0;
};

}  // namespace nmt
