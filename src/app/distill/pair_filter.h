#pragma once

#include "config/enum_names.h"

#include <array>
#include <cstdint>
#include <string>
#include <unordered_set>

namespace nmt::app {

/// What PairFilter says of a pair; the first that applies.
enum class Verdict {
  kept,
  empty,       ///< a side without text
  length,      ///< PairFilter::max_ratio
  repetition,  ///< find_output_repetition() of words
  duplicate    ///< an earlier pair is the same
};

/// Decides which distilled pairs a student is trained on.
class PairFilter {
 public:
  /// The longer side may have at most `max_ratio` times the characters of the shorter one, plus
  /// max_ratio_offset.
  explicit PairFilter(double max_ratio) : max_ratio_(max_ratio) {}
  static constexpr double max_ratio_offset = 20;

  /// Sides of valid UTF-8. Pairs count as the same by a hash of 64 bits.
  Verdict judge(const std::string& source, const std::string& target);

 private:
  double max_ratio_;
  std::unordered_set<std::uint64_t> seen_;
};

}  // namespace nmt::app

namespace nmt {

template <>
struct EnumNames<app::Verdict> {
  static constexpr auto names =
      std::to_array<std::string_view>({"kept", "empty", "length", "repetition", "duplicate"});
};

}  // namespace nmt
