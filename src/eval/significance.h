#pragma once

#include "eval/metric.h"

#include <cstdint>
#include <vector>

namespace nmt {

// sacreBLEU's significance tests, to the digit: the same resamples as numpy's default_rng(seed),
// and the same arithmetic.

constexpr std::uint64_t significance_seed = 12345;

/// mean +- half_width; half the distance between the 2.5 % and the 97.5 % quantile of the
/// resamples.
struct Interval {
  double mean = 0, half_width = 0;
};

/// Bootstrap (Efron 1979; Koehn 2004) over sentences for one system. samples > 1.
Interval confidence_interval(const Metric& metric, const SentenceCounts& counts, int samples,
                             std::uint64_t seed = significance_seed);

/// One system against the baseline; for the baseline itself p_value is negative.
struct PairedResult {
  double score = 0;
  double p_value = -1;
  bool has_interval = false;
  Interval interval;
};

/// Paired bootstrap: `systems[0]` is the baseline; all have the same sentences. p = (c + 1) /
/// (samples + 1), where c counts the resamples with |difference| - mean |difference| > |real
/// difference|. One result a system.
std::vector<PairedResult> paired_bootstrap(const Metric& metric,
                                           const std::vector<SentenceCounts>& systems, int samples,
                                           std::uint64_t seed = significance_seed);

/// Paired approximate randomization (Riezler and Maxwell 2005): sentences change sides by a coin; c
/// counts the trials with a |difference| above the real one. One result a system, without
/// intervals.
std::vector<PairedResult> paired_randomization(const Metric& metric,
                                               const std::vector<SentenceCounts>& systems,
                                               int trials, std::uint64_t seed = significance_seed);

}  // namespace nmt
