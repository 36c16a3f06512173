#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace nmt {

// Document context by concatenation, N to 1: the source of a sentence is the N preceding source
// sentences of its document and the sentence itself; the target is the sentence alone (Tiedemann &
// Scherrer 2017, "Neural Machine Translation with Extended Context", section 3, "extended source").
// A blank line ends a document, so a sentence has no context beyond it.

/// The source sentences before a sentence in its document, oldest first.
using ContextSentences = std::vector<std::string>;

/// Follows the lines of a text, which begins a document, and gives the context of each.
class DocumentContext {
 public:
  /// `sentences`: N; 0: all contexts are empty.
  explicit DocumentContext(int sentences) : sentences_(static_cast<std::size_t>(sentences)) {}

  /// The context of the next line: at most N lines. That of a blank line is empty.
  ContextSentences next(const std::string& line);

 private:
  std::size_t sentences_;
  ContextSentences before_;  // the context of the next line
};

/// The contexts of the lines of a text, which begins a document; none at all where N is 0.
std::vector<ContextSentences> contexts_of(std::span<const std::string> lines, int sentences);

/// The ids of a sentence and its length in the unit of a limit; the length is 0 without ids.
using MeasuredSentence = std::pair<std::vector<std::int32_t>, std::int32_t>;

/// The input of the encoder, without the </s> at its end.
struct SourceIds {
  std::vector<std::int32_t> ids;
  std::size_t context = 0;  ///< number of leading ids before the sentence, separators included

  /// The ids of the sentence itself.
  std::span<const std::int32_t> sentence() const { return std::span(ids).subspan(context); }
};

/// Each sentence of the context, oldest first, and a separator, then the sentence. As many of the
/// latest sentences of the context are used as fit: their lengths, one for each separator and the
/// length of the sentence are `limit` at most. Sentences without ids are left out. The separator is
/// </s>, which every vocabulary has.
SourceIds join_context(std::span<const MeasuredSentence> context, MeasuredSentence sentence,
                       std::int64_t limit, std::int32_t separator);

}  // namespace nmt
