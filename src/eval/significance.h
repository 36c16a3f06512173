#pragma once

#include "eval/metric.h"
#include "nmt/metrics.h"

#include <cstdint>
#include <vector>

namespace nmt {

// sacreBLEU's significance tests, digit for digit: the same resamples as numpy's default_rng(seed)
// and the same arithmetic. One exception is TER with several references whose number is no power of
// two: sacreBLEU sums rounded mean lengths, in an order that depends on its BLAS, so the last
// digits of scores differ, and with them the p-value where differences tie.

/// Bootstrap resampling (Efron 1979; Koehn 2004) over the sentences of one system. samples > 1.
Interval confidence_interval(const Metric& metric, const SentenceCounts& counts, int samples,
                             std::uint64_t seed = significance_seed);

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
