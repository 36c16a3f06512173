// What kernels and products read, as the emulator counts it.

#include "config/precision.h"
#include "cuda/kernels/divisor.h"
#include "kernels/decoding/top_k.h"
#include "kernels/products/gemm.h"
#include "tests/support/cuda_fixture.h"

#include <numeric>
#include <vector>

#include <emulator.h>
#include <gtest/gtest.h>

namespace nmt::test {
namespace {

class EmulatedKernels : public WithCudaDevice {
 protected:
  float* floats(std::int64_t n) {
    memory.push_back(source->allocate(static_cast<std::size_t>(n) * sizeof(float)));
    return reinterpret_cast<float*>(memory.back());
  }
  void TearDown() override {
    for (char* data : memory) source->release(data);
  }
  std::vector<char*> memory;
};

TEST(Divisor, DividesAllNumbersBelow2To31) {
  constexpr std::uint32_t max_value = 0x7FFFFFFFu;
  std::vector<std::uint32_t> divisors(4097);
  std::iota(divisors.begin(), divisors.end(), 1u);
  for (int shift = 12; shift < 31; ++shift)
    for (const std::uint32_t step : {0u, 1u, 2u, 12345u})
      for (const std::uint32_t d : {(1u << shift) + step, (2u << shift) - 1 - step})
        if (d <= max_value) divisors.push_back(d);
  for (const std::uint32_t d : divisors) {
    const cuda::Divisor divisor(d);
    // Around multiples of the divisor, where an error shows first, up to the largest number.
    const std::uint32_t stride = std::max(1u, max_value / d / 64);
    for (std::int64_t times = 0; times * d <= max_value; times += stride) {
      const std::int64_t multiple = times * d, opposite = max_value - times;
      for (const std::int64_t n : {multiple - 1, multiple, multiple + 1, opposite})
        if (n >= 0 && n <= max_value) {
          ASSERT_EQ(divisor.quotient(static_cast<std::uint32_t>(n)), n / d) << n << " / " << d;
        }
    }
  }
}

// Rows of a multiple of 16 bytes, whatever the shapes and the gaps: vocabularies too are often not
// divisible by 8.
TEST_F(EmulatedKernels, RoundedInputsOfProductsAreAligned) {
  CudaDevice rounding(0, Precision::bfloat16);
  const float* const a = floats(400 * 400);
  const float* const b = floats(400 * 400);
  float* const c = floats(400 * 400);
  device->clear(const_cast<float*>(a), 400 * 400 * sizeof(float));
  device->clear(const_cast<float*>(b), 400 * 400 * sizeof(float));
  const std::int64_t before = emulator::counters().unaligned_operands;
  for (const std::int64_t width : {1, 4, 8, 33, 257, 300})
    for (const std::int64_t gap : {0, 3, 8}) {
      kernels::gemm(rounding.handle(), false, false, 5, 7, width, a, width + gap, b, 7 + gap, 0.0f,
                    c, 7);
      kernels::gemm(rounding.handle(), true, true, width, 9, 12, a, width + gap, b, 12 + gap, 0.0f,
                    c, 9);
    }
  rounding.synchronize();
  EXPECT_EQ(emulator::counters().unaligned_operands, before);
}

// The greatest of a row is found in one pass: for rows of greater and greater values, twice the
// width takes a whole number of accesses more for every four elements. A second pass over the
// elements of the thread that had the greatest one would add a 512th.
TEST_F(EmulatedKernels, TopKReadsARowOnce) {
  constexpr std::int64_t width = 16 * 1024;
  std::vector<float> values(2 * width);
  std::iota(values.begin(), values.end(), 0.0f);
  float* const x = floats(2 * width);
  float* const best = floats(1);
  float* const column = floats(1);
  device->to_device(x, values.data(), 2 * width * sizeof(float));
  const auto accesses = [&](std::int64_t n) {
    const std::int64_t before = emulator::counters().accesses;
    kernels::top_k(device->handle(), 1, n, x, 1, {}, best, reinterpret_cast<std::int32_t*>(column));
    return emulator::counters().accesses - before;
  };
  const std::int64_t one = accesses(width), two = accesses(2 * width);
  if (one == 0) GTEST_SKIP() << "accesses are not counted under AddressSanitizer";
  EXPECT_GE(two - one, width / 4);
  EXPECT_EQ((two - one) % (width / 4), 0) << one << " " << two;
}

}  // namespace
}  // namespace nmt::test
