#pragma once

#include "kernels/decoding/beam.h"
#include "model/step_scorer.h"

#include <cstdint>
#include <span>
#include <vector>

namespace nmt {

/// Selects the scores of a step that a search needs: the k largest logits of every row with their
/// tokens, the logit of one additional token, and the log normalizer. Scores on a device are
/// selected there and copied to the host at once.
class TopK {
 public:
  /// `skip`: excluded tokens; `extra`: the additional token. `cpu` processes scores in host memory.
  TopK(const Cpu& cpu, int vocabulary, int k, std::vector<std::int32_t> skip, std::int32_t extra);

  /// As Decoding::restrict_to(): from now on the columns of scores are candidates. They must not
  /// contain skipped tokens and must contain `extra` for every sentence. Host memory only.
  void restrict_to(Candidates candidates);

  /// Processes all rows of a step. `sentences`: the sentence of each row, when the scores are
  /// restricted. Synchronizes with the device once. Error (failed): the number of scores differs
  /// from the vocabulary.
  void select(Decoding& decoding, const DecodingStep& step, std::span<const int> sentences = {});

  /// The selected scores in device memory, valid until the next call; does not synchronize.
  struct OnDevice {
    const std::int32_t* tokens = nullptr;  ///< [n,k] as tokens()
    const float* logits = nullptr;         ///< [n,k]
    const float* extras = nullptr;         ///< [n], extra_stride apart
    std::int64_t extra_stride = 1;
    const float* log_normalizers = nullptr;  ///< [n]
    /// Where its lists are set, beam_step() writes the tokens, logits and normalizers first.
    kernels::BeamStep::Joined joined;
  };
  OnDevice select_on_device(Decoding& decoding, const DecodingStep& step);

  int k() const { return k_; }
  /// The k best of a row in descending order; token -1: no more.
  const float* logits(int row) const { return logits_.data() + std::int64_t{row} * k_; }
  const std::int32_t* tokens(int row) const { return tokens_.data() + std::int64_t{row} * k_; }
  float extra(int row) const { return extras_[static_cast<std::size_t>(row)]; }
  float log_normalizer(int row) const { return log_normalizers_[static_cast<std::size_t>(row)]; }

 private:
  void on_host(int first, const NextTokens& scores, std::span<const int> sentences);
  /// Processes a block of a step with `rows` rows; `extras`: also the additional token and the
  /// normalizers.
  void on_device(int first, int rows, const NextTokens& scores, bool extras);
  /// The lists of all rows of a step whose logits are one block.
  kernels::PartLists list_parts(const NextTokens& scores);
  std::int32_t* room_for(const Context& context, std::int64_t rows);
  void fetch(const Context& context, std::int64_t rows);

  Cpu cpu_;
  int vocabulary_, k_;
  std::vector<std::int32_t> skip_;
  std::int32_t extra_;
  Candidates candidates_;
  std::vector<float> logits_, extras_, log_normalizers_;
  std::vector<std::int32_t> tokens_;
  // i32 on the device: tokens [n,k]; then, as float bits, logits [n,k], extras [n], normalizers
  // [n].
  Tensor chosen_;
  Tensor lists_;  // i32 on the device: kernels::PartLists::keys, then its sums
};

/// log p of a given token in each row of a step.
class TokenScores {
 public:
  /// tokens [step.rows]. Asynchronous. Errors: as TopK.
  TokenScores(Decoding& decoding, const DecodingStep& step, int vocabulary,
              std::span<const std::int32_t> tokens);
  /// Synchronizes with the device.
  std::vector<float> read() const;

 private:
  std::vector<float> on_host_;
  Tensor on_device_;  // [2,n]: logits and normalizers
  const Context* device_ = nullptr;
};

}  // namespace nmt
