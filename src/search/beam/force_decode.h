#pragma once

#include "model/step_scorer.h"

#include <cstdint>
#include <span>
#include <vector>

namespace nmt {

/// What the model thinks of a given translation.
struct ForcedScore {
  std::vector<float> log_probs;  ///< [T], natural logarithms, the last is that of </s>
  float log_prob = 0;  ///< their sum, added in order: Hypothesis::log_prob of the same ids
  std::vector<float> attention;  ///< [T,S] as in Hypothesis, or empty when not asked for
};

/// Scores targets[i] (ids without </s>) as the translation of sources[i], step by step through the
/// scorer that search uses, all pairs together; a pair leaves the batch when its </s> is scored.
/// Ids are of the target vocabulary. Errors (failed): numbers of sources and targets differ; an id
/// outside the vocabulary; the scorer gives NaN or infinity.
std::vector<ForcedScore> force_decode(StepScorer& scorer,
                                      std::span<const std::vector<std::int32_t>> sources,
                                      std::span<const std::vector<std::int32_t>> targets,
                                      bool want_attention = false, std::int32_t bos = 1,
                                      std::int32_t eos = 2);

}  // namespace nmt
