#pragma once

#include "model/step_scorer.h"

#include <cstdint>
#include <span>
#include <vector>

namespace nmt {

/// What a search keeps of a step's scores, wherever they were computed: the k greatest logits of
/// every row with their tokens, the logit of one more token, and the log normalizer. On a device
/// all is chosen there, and brought to the host at once.
class TopK {
 public:
  /// `skip`: tokens never chosen; `extra`: the token whose logit is wanted too. `cpu` serves scores
  /// in the host's memory.
  TopK(const Cpu& cpu, int vocabulary, int k, std::vector<std::int32_t> skip, std::int32_t extra);

  /// As Decoding::restrict_to(): columns of scores are candidates from now on, the skipped tokens
  /// none of them, `extra` one of every sentence's. In the host's memory alone.
  void restrict_to(Candidates candidates);

  /// Looks at all rows of a step; `sentences`: of each row, where the scores are restricted. Waits
  /// for the device once. Error (failed): another number of scores than the vocabulary has.
  void look(Decoding& decoding, const DecodingStep& step, std::span<const int> sentences = {});

  /// The same of scores on a device, left there, until the next call: nothing is waited for.
  struct OnDevice {
    const std::int32_t* tokens = nullptr;  ///< [n,k] as tokens()
    const float* logits = nullptr;         ///< [n,k]
    const float* extras = nullptr;         ///< [n] with a stride
    std::int64_t extra_stride = 1;
    const float* log_normalizers = nullptr;  ///< [n]
  };
  OnDevice look_on_device(Decoding& decoding, const DecodingStep& step);

  int k() const { return k_; }
  /// Of one row, in descending order; token -1: no more.
  const float* logits(int row) const { return logits_.data() + std::int64_t{row} * k_; }
  const std::int32_t* tokens(int row) const { return tokens_.data() + std::int64_t{row} * k_; }
  float extra(int row) const { return extras_[static_cast<std::size_t>(row)]; }
  float log_normalizer(int row) const { return log_normalizers_[static_cast<std::size_t>(row)]; }

 private:
  void on_host(int first, const NextTokens& scores, std::span<const int> sentences);
  /// A block of a step of `rows` rows; `extras`: with what stands beside the k best.
  void on_device(int first, int rows, const NextTokens& scores, bool extras);
  void fetch(const Context& context, std::int64_t rows);

  Cpu cpu_;
  int vocabulary_, k_;
  std::vector<std::int32_t> skip_;
  std::int32_t extra_;
  Candidates candidates_;
  std::vector<float> logits_, extras_, log_normalizers_;
  std::vector<std::int32_t> tokens_;
  // i32 on the device, in this order: tokens [n,k]; as floats logits [n,k], extras [n], normalizers
  // [n].
  Tensor chosen_;
};

/// log p of one given token in each row of a step.
class TokenScores {
 public:
  /// tokens [step.rows]. Waits for nothing. Errors: as above.
  TokenScores(Decoding& decoding, const DecodingStep& step, int vocabulary,
              std::span<const std::int32_t> tokens);
  /// Waits for the device.
  std::vector<float> read() const;

 private:
  std::vector<float> on_host_;
  Tensor on_device_;  // [2,n]: logits and normalizers
  const Context* device_ = nullptr;
};

}  // namespace nmt
