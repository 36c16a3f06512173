#pragma once

#include "nmt/metrics.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace nmt {

constexpr int chrf_orders = 16;  ///< maximum number of character and word orders together

/// Per order: n-grams of the hypothesis, n-grams of the reference, matches.
struct ChrfCounts {
  std::array<std::array<std::int64_t, 3>, chrf_orders> orders{};
  ChrfCounts& operator+=(const ChrfCounts& other);
};

/// Counts of one hypothesis against the reference with the highest score.
ChrfCounts chrf_counts(const std::string& hypothesis, const std::vector<std::string>& references,
                       const ChrfOptions& options);
/// chrF (Popovic 2015) of summed counts, 0 to 100, as in sacreBLEU 2 (without epsilon smoothing).
double chrf_from_counts(const ChrfCounts& counts, const ChrfOptions& options);
double corpus_chrf(const std::vector<std::string>& hypotheses,
                   const std::vector<std::string>& references, const ChrfOptions& options = {});
/// For example "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:nmt-0.1.0"
std::string chrf_signature(const ChrfOptions& options, int references,
                           const std::string& trials = "");
/// For example "chrF2" or "chrF2++".
std::string chrf_name(const ChrfOptions& options);

}  // namespace nmt
