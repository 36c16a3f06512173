#pragma once

#include "data/batch.h"
#include "data/corpus.h"
#include "nmt/vocabulary.h"
#include "train/batch_source.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nmt {

/// The training batches of a language model: the lines of a text, each with </s>, are one sequence
/// of tokens, divided into `streams` parts of equal length that are read side by side, `steps` at a
/// time. The first input is </s>. The last tokens, fewer than `streams`, belong to no part. All
/// ids are in memory, 4 bytes per token.
class TokenStream : public train::BatchSource {
 public:
  /// Lines [0, lines) of the text; blank lines are skipped. Error (data): fewer tokens than
  /// streams.
  TokenStream(const TextFile& text, std::int64_t lines, const Vocabulary& vocabulary, int streams,
              int steps);

  const Batch& next() override;
  double epochs() const override;
  std::string position() const override;
  /// Error (data): not such a position.
  void restore(const std::string& position) override;
  std::vector<Batch> largest() override;

  std::int64_t tokens() const { return std::ssize(ids_) - 1; }
  std::int64_t sentences() const { return sentences_; }
  std::int64_t blank_lines() const { return blank_; }

 private:
  Batch window(std::int64_t first) const;
  std::int64_t windows() const { return (length_ + steps_ - 1) / steps_; }

  Ids ids_;  // </s>, then every line with </s>
  std::int64_t streams_, steps_, length_ = 0, sentences_ = 0, blank_ = 0;
  std::int64_t epoch_ = 0, window_ = 0;  // completed epochs; next window of the current one
  Batch batch_;
};

}  // namespace nmt
