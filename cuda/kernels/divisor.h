#pragma once

#include "core/host_device.h"

#include <cstdint>

namespace nmt::cuda {

/// Division of numbers below 2^31 by the same divisor, 1 to 2^31 - 1, as a multiplication (Granlund
/// and Montgomery, "Division by Invariant Integers using Multiplication", PLDI 1994, figure 4.1). A
/// GPU has no instruction for a division.
class Divisor {
 public:
  using Index = std::uint32_t;

  explicit Divisor(Index divisor) : divisor_(divisor) {
    while ((std::uint64_t{1} << shift_) < divisor) ++shift_;
    const std::uint64_t rest = (std::uint64_t{1} << shift_) - divisor;
    multiplier_ = static_cast<Index>((rest << 32) / divisor + 1);
  }
  NMT_HOST_DEVICE Index quotient(Index n) const {
    const auto high = static_cast<Index>(std::uint64_t{n} * multiplier_ >> 32);
    return (high + n) >> shift_;
  }
  NMT_HOST_DEVICE Index divisor() const { return divisor_; }

 private:
  Index divisor_, multiplier_ = 0, shift_ = 0;
};

/// The same for all numbers, by a division.
class WideDivisor {
 public:
  using Index = std::int64_t;

  explicit WideDivisor(Index divisor) : divisor_(divisor) {}
  NMT_HOST_DEVICE Index quotient(Index n) const { return n / divisor_; }
  NMT_HOST_DEVICE Index divisor() const { return divisor_; }

 private:
  Index divisor_;
};

}  // namespace nmt::cuda
