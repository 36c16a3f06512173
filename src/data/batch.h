#pragma once

#include <cstdint>
#include <vector>

namespace nmt {

/// Where the sentences of a part stand in its whole batch: number b at first + b * stride of
/// `whole`.
struct BatchPlace {
  int first = 0, stride = 1, whole = 0;
  bool operator==(const BatchPlace&) const = default;
};

/// A padded batch of sentence pairs, time-major: entry [t, b] stands at t * sentences + b.
/// A source sentence ends with </s>; target_in starts with <s>, target_out ends with </s>. Padded
/// entries hold </s> and mask 0.
struct Batch {
  int sentences = 0;     ///< B
  int source_steps = 0;  ///< S, longest source with its </s>
  int target_steps = 0;  ///< T, longest target with its </s>; 0 when there is no target side
  std::vector<std::int32_t> source;      ///< [S,B]
  std::vector<float> source_mask;        ///< [S,B], 1 or 0
  std::vector<std::int32_t> target_in;   ///< [T,B]
  std::vector<std::int32_t> target_out;  ///< [T,B]
  std::vector<float> target_mask;        ///< [T,B], 1 or 0
  std::vector<std::int64_t> lines;       ///< [B], the pair's line in the corpus, from 0
  std::int64_t source_tokens = 0;        ///< without padding
  std::int64_t target_tokens = 0;        ///< without padding
  /// of these sentences, where they are a part of a batch; dropout draws the whole batch's masks.
  BatchPlace place;
};

using Ids = std::vector<std::int32_t>;

/// Pads encoded sentences (without <s> and </s>) into a batch; `targets` may be empty for a batch
/// without a target side. Numbers of sources and targets must agree otherwise. bos and eos are the
/// vocabulary's ids.
Batch make_batch(const std::vector<const Ids*>& sources, const std::vector<const Ids*>& targets,
                 std::int32_t bos, std::int32_t eos);

/// Sentences [first, first + count) of a batch, with no more steps than they need.
Batch slice(const Batch& batch, int first, int count);

/// Which part of every batch one of several processes takes: sentences rank, rank + size, ..., so
/// that the parts are alike in length.
struct Share {
  int rank = 0, size = 1;
};
/// That part, with no more steps than it needs; without sentences when the batch has too few.
Batch take(const Batch& batch, const Share& share);

}  // namespace nmt
