#pragma once

#include "core/batch_slice.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace nmt {

/// Sentences and steps of a padded batch.
struct BatchShape {
  int sentences = 0, source_steps = 0, target_steps = 0;
  bool operator==(const BatchShape&) const = default;
};

/// What the model of a task reads besides the members of Batch.
class BatchExtra {
 public:
  virtual ~BatchExtra() = default;
  /// The part for `count` sentences of the batch, `stride` apart.
  virtual std::shared_ptr<const BatchExtra> part(int first, int count, int stride) const = 0;
};

/// A padded batch of sentence pairs, time-major: entry [t, b] is at index t * sentences + b. Source
/// sentences end with </s>; target_in starts with <s>, target_out ends with </s>. Padding has id
/// </s> and mask 0.
struct Batch {
  int sentences = 0;                 ///< B
  int source_steps = 0;              ///< S, longest source including </s>
  int target_steps = 0;              ///< T, longest target including </s>; 0 without a target side
  std::vector<std::int32_t> source;  ///< [S,B]
  std::vector<float> source_mask;    ///< [S,B], 1 or 0
  std::vector<std::int32_t> target_in;   ///< [T,B]
  std::vector<std::int32_t> target_out;  ///< [T,B]
  std::vector<float> target_mask;        ///< [T,B], 1 or 0
  std::vector<std::int64_t> lines;       ///< [B], line of each pair in the corpus, from 0
  std::int64_t source_tokens = 0;        ///< without padding
  std::int64_t target_tokens = 0;        ///< without padding
  /// Position in the full batch, when this is a part; dropout draws the masks of the full batch.
  BatchSlice slice;
  /// Of the share of one of several processes: a shape that holds the share of each of them, in
  /// which in_round_shape() pads it. Else zeros.
  BatchShape of_shares;
  /// Language model: position of step 0 in the streams; 0 in a batch of whole sentences.
  std::int64_t first_step = 0;
  std::shared_ptr<const BatchExtra> extra;  ///< null if the task needs none
};

using Ids = std::vector<std::int32_t>;

/// Pads encoded sentences (without <s> and </s>) into a batch. `targets` is empty for a batch
/// without a target side; otherwise it has as many sentences as `sources`. bos and eos are ids of
/// the vocabulary.
Batch make_batch(const std::vector<const Ids*>& sources, const std::vector<const Ids*>& targets,
                 std::int32_t bos, std::int32_t eos);

/// The tokens of each source sentence, </s> included: [B].
std::vector<std::int32_t> source_lengths(const Batch& batch);
/// The numbers of tokens of encoded sentences.
std::vector<int> sizes_of(std::span<const Ids> sentences);
/// The sentences that have tokens in batches of at most `max_tokens`, padding included, or of one
/// sentence. Longest first, so that the first batch needs the most memory.
std::vector<std::vector<std::size_t>> longest_first(std::span<const Ids> sentences,
                                                    std::size_t max_tokens);

/// Sentences [first, first + count) of a batch, trimmed to their longest sentences.
Batch slice(const Batch& batch, int first, int count);

/// The part of every batch that one of several processes takes: sentences rank, rank + size, ...,
/// so that all parts have similar lengths.
struct RankSlice {
  int rank = 0, size = 1;
};
/// The sentences of a share, trimmed to their longest sentences; none when the batch has too few.
Batch take(const Batch& batch, const RankSlice& share);

}  // namespace nmt
