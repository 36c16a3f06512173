#pragma once

#include <cstdint>
#include <vector>

namespace nmt::app::bench {

/// A loop of independent multiply-adds with one kind of vector or matrix instruction.
struct InstructionLoop {
  const char* name;  ///< type of the factors and instruction set: "bfloat16 AVX-512 BF16"
  /// Runs `rounds` rounds on the calling thread. All factors are 1: *sum is the number of products
  /// added to one element of an accumulator. Returns the number of operations, two for each
  /// multiply-add.
  std::int64_t (*run)(std::int64_t rounds, double* sum);
};

/// The loops that this processor and operating system can run: float32 with AVX2 and AVX-512,
/// bfloat16 with AVX-512 BF16 and AMX, int8 with AVX2, AVX-512 VNNI and AMX. Empty on other
/// architectures than x86-64.
std::vector<InstructionLoop> instruction_loops();

/// Runs `rounds` multiplications of integers, each with the result of the one before, on the
/// calling thread. Returns the number of clock cycles that they take: 3 each, the latency on Intel
/// processors since Nehalem and AMD processors since Zen (uops.info, IMUL). 0 on other
/// architectures than x86-64.
std::int64_t run_latency_loop(std::int64_t rounds);

}  // namespace nmt::app::bench
