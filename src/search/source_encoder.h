#pragma once

#include "core/threads/thread_pool.h"
#include "nmt/vocabulary.h"
#include "search/piece_text.h"
#include "text/document_context.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nmt {

/// The input of the encoder for a line.
struct EncodedSource {
  SourceIds source;        ///< no ids for a line without pieces, whatever its context
  std::size_t tokens = 0;  ///< of the line, before cropping
};

/// Makes the input of a model's encoder from source lines, each with its context.
class SourceEncoder {
 public:
  /// The vocabulary must outlive the encoder. `context_sentences`: N of the model; 0: lines alone.
  /// `max_length`: maximum number of ids. A longer line is cropped; where it is short enough, its
  /// context loses the oldest sentences. `in_pieces`: lines consist of pieces (PieceText).
  SourceEncoder(const Vocabulary& vocabulary, int context_sentences, int max_length,
                bool in_pieces);

  /// `contexts`: one per line, of which the last N sentences are used; none: the lines are a text
  /// that begins a document. Blank lines have no ids. Error (failed): another number of contexts.
  std::vector<EncodedSource> encode(std::span<const std::string> lines,
                                    std::span<const ContextSentences> contexts,
                                    ThreadPool& pool) const;

  /// The sentences at the end of `context` that encode() uses with a line of `tokens` ids; none
  /// without ids. A line with more ids uses as many or fewer.
  std::span<const std::string> used_context(std::span<const std::string> context,
                                            std::size_t tokens) const;

 private:
  EncodedSource encode(const std::string& line, std::span<const std::string> context) const;
  /// The last N sentences.
  std::span<const std::string> last_sentences(std::span<const std::string> context) const;
  MeasuredSentence measure(const std::string& line) const;

  const Vocabulary& vocabulary_;
  int context_sentences_;
  std::size_t max_length_;
  std::optional<PieceText> pieces_;
};

}  // namespace nmt
