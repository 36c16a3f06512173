#pragma once

#include "eval/metric.h"

#include <cstdint>
#include <vector>

namespace nmt {

// sacreBLEU's significance tests, digit for digit: the same resamples as numpy's default_rng(seed)
// and the same arithmetic.

constexpr std::uint64_t significance_seed = 12345;

/// mean +- half_width; half_width is half the distance between the 2.5 % and 97.5 % quantiles of
/// the resamples.
struct Interval {
  double mean = 0, half_width = 0;
};

/// Bootstrap resampling (Efron 1979; Koehn 2004) over the sentences of one system. samples > 1.
Interval confidence_interval(const Metric& metric, const SentenceCounts& counts, int samples,
                             std::uint64_t seed = significance_seed);

/// A system compared with the baseline; p_value is negative for the baseline itself.
struct PairedResult {
  double score = 0;
  double p_value = -1;
  bool has_interval = false;
  Interval interval;
};

/// Paired bootstrap. `systems[0]` is the baseline; all systems have the same sentences. p = (c + 1)
/// / (samples + 1), where c is the number of resamples with |difference| - mean |difference| >
/// |actual difference|. Returns one result per system.
std::vector<PairedResult> paired_bootstrap(const Metric& metric,
                                           const std::vector<SentenceCounts>& systems, int samples,
                                           std::uint64_t seed = significance_seed);

/// Paired approximate randomization (Riezler and Maxwell 2005): outputs of the two systems are
/// swapped at random per sentence; c is the number of trials with a larger |difference| than the
/// actual one. Returns one result per system, without intervals.
std::vector<PairedResult> paired_randomization(const Metric& metric,
                                               const std::vector<SentenceCounts>& systems,
                                               int trials, std::uint64_t seed = significance_seed);

}  // namespace nmt
