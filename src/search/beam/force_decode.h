#pragma once

#include "model/step_scorer.h"

#include <cstdint>
#include <span>
#include <vector>

namespace nmt {

/// The score of a given translation.
struct ForcedScore {
  std::vector<float> log_probs;  ///< [T], natural logarithms, the last for </s>
  float log_prob = 0;            ///< sum in order, equal to Hypothesis::log_prob for the same ids
  std::vector<float> attention;  ///< [T,S] as in Hypothesis; empty unless want_attention
};

/// Scores targets[i] (ids without </s>) as the translation of sources[i], step by step with the
/// scorer that the search uses, as one batch; a pair leaves the batch when its </s> has been
/// scored. bos and eos are ids of the target vocabulary. Errors (failed): different numbers of
/// sources and targets; an id outside the vocabulary; the scorer returns NaN or +infinity.
std::vector<ForcedScore> force_decode(StepScorer& scorer,
                                      std::span<const std::vector<std::int32_t>> sources,
                                      std::span<const std::vector<std::int32_t>> targets,
                                      bool want_attention = false, std::int32_t bos = 1,
                                      std::int32_t eos = 2);

}  // namespace nmt
