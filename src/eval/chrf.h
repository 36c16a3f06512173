#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace nmt {

struct ChrfOptions {
  int character_order = 6;
  int word_order = 0;  ///< 2: chrF++
  int beta = 2;        ///< recall counts beta times as much as precision
  bool lowercase = false;
  bool whitespace = false;  ///< count white space among the characters
};

constexpr int chrf_orders = 16;  ///< most orders of characters and words together

/// For each order: n-grams of the hypothesis, of the reference, and in both.
struct ChrfCounts {
  std::array<std::array<std::int64_t, 3>, chrf_orders> orders{};
  ChrfCounts& operator+=(const ChrfCounts& other);
};

/// Counts of one hypothesis against the best of its references.
ChrfCounts chrf_counts(const std::string& hypothesis, const std::vector<std::string>& references,
                       const ChrfOptions& options);
/// chrF (Popovic 2015) of summed counts, 0 to 100, as sacreBLEU 2 computes it (without epsilon
/// smoothing).
double chrf_from_counts(const ChrfCounts& counts, const ChrfOptions& options);
double corpus_chrf(const std::vector<std::string>& hypotheses,
                   const std::vector<std::string>& references, const ChrfOptions& options = {});
/// "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:nmt-0.1.0"
std::string chrf_signature(const ChrfOptions& options, int references,
                           const std::string& trials = "");
/// "chrF2", "chrF2++"
std::string chrf_name(const ChrfOptions& options);

}  // namespace nmt
