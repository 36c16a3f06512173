// The emulated instructions of AVX-512 BF16 against their definition, one number at a time, and
// against those of this processor.

#include "core/rng.h"
#include "tests/kernels/amx/emulated_products.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

namespace nmt::kernels {
namespace {

std::uint32_t bits_of(float x) {
  return std::bit_cast<std::uint32_t>(x);
}
float float_of(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

// Zero with the sign of x where x is denormal.
float flushed(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}

// To nearest even, in double: NaN keeps its upper half and becomes quiet.
std::uint16_t rounded_half(float x) {
  if (std::isnan(x)) return static_cast<std::uint16_t>(bits_of(x) >> 16 | 0x40);
  x = flushed(x);
  if (x == 0 || std::isinf(x)) return static_cast<std::uint16_t>(bits_of(x) >> 16);
  int exponent;
  const double fraction = std::frexp(double{x}, &exponent);
  const double value = std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8);
  return static_cast<std::uint16_t>(bits_of(static_cast<float>(value)) >> 16);  // or infinity
}

float multiply_add(float sum, std::uint16_t a, std::uint16_t b) {
  const auto value = [](std::uint16_t half) {
    return flushed(float_of(std::uint32_t{half} << 16));
  };
  return flushed(std::fma(value(a), value(b), flushed(sum)));
}

// Any bits; in turn any, near the smallest normal numbers, and of sizes whose sums cancel.
std::uint32_t random_bits(Rng& rng, int kind) {
  const auto any = static_cast<std::uint32_t>(rng.below(std::uint64_t{1} << 32));
  if (kind == 1) return (any & 0x80FFFFFFu) | (any >> 3 & 0x01000000u);
  if (kind == 2) return (any & 0x80FFFFFFu) | 0x3F000000u;
  return any;
}

class EmulatedPairs : public testing::Test {
 protected:
  void SetUp() override {
    if (!emulated.round) GTEST_SKIP() << "needs a processor with AVX-512";
  }
  const PairInstructions emulated = emulated_pair_instructions();
};

// A NaN's sign and payload are not compared where it is a result of arithmetic.
bool same(float x, float y) {
  return (std::isnan(x) && std::isnan(y)) || bits_of(x) == bits_of(y);
}

TEST_F(EmulatedPairs, RoundAsDefined) {
  Rng rng(1);
  std::array<float, 32> from;
  std::array<std::uint16_t, 32> to;
  for (int i = 0; i < 30000; ++i) {
    for (std::size_t j = 0; j < from.size(); ++j) {
      std::uint32_t bits = random_bits(rng, i % 3);
      if (j % 4 == 0) bits = (bits & 0xFFFF0000u) | 0x8000u;  // a tie
      from[j] = float_of(bits);
    }
    emulated.round(from.data(), to.data());
    for (std::size_t j = 0; j < from.size(); ++j)
      ASSERT_EQ(to[j], rounded_half(from[j])) << std::hex << bits_of(from[j]);
  }
  from.fill(std::nextafter(INFINITY, 0.0f));
  emulated.round(from.data(), to.data());
  EXPECT_EQ(to[0], 0x7F80);
}

TEST_F(EmulatedPairs, AddProductsAsDefined) {
  Rng rng(2);
  std::array<std::uint16_t, 32> a, b;
  std::array<float, 16> sums;
  for (int i = 0; i < 30000; ++i) {
    for (std::size_t j = 0; j < a.size(); ++j) {
      a[j] = static_cast<std::uint16_t>(random_bits(rng, i % 3) >> 16);
      b[j] = static_cast<std::uint16_t>(random_bits(rng, i % 3 == 1 ? 2 : i % 3) >> 16);
    }
    for (float& sum : sums) sum = float_of(random_bits(rng, i % 3));
    const std::array<float, 16> before = sums;
    emulated.add_products(a.data(), b.data(), sums.data());
    for (std::size_t j = 0; j < sums.size(); ++j) {
      const float odd = multiply_add(before[j], a[2 * j + 1], b[2 * j + 1]),
                  expected = multiply_add(odd, a[2 * j], b[2 * j]);
      ASSERT_TRUE(same(sums[j], expected)) << sums[j] << " not " << expected;
    }
  }
}

TEST_F(EmulatedPairs, AreThoseOfTheProcessor) {
  const PairInstructions processor = processor_pair_instructions();
  if (!processor.round) GTEST_SKIP() << "needs a processor with AVX-512 BF16";
  Rng rng(3);
  std::array<float, 32> from;
  std::array<std::uint16_t, 32> a, b, again;
  std::array<float, 16> sums, others;
  for (int i = 0; i < 30000; ++i) {
    for (float& value : from) value = float_of(random_bits(rng, i % 3));
    emulated.round(from.data(), a.data());
    processor.round(from.data(), again.data());
    ASSERT_EQ(a, again);
    for (float& value : from) value = float_of(random_bits(rng, i % 3));
    emulated.round(from.data(), b.data());
    for (float& sum : sums) sum = float_of(random_bits(rng, i % 3));
    others = sums;
    emulated.add_products(a.data(), b.data(), sums.data());
    processor.add_products(a.data(), b.data(), others.data());
    for (std::size_t j = 0; j < sums.size(); ++j)
      ASSERT_TRUE(same(sums[j], others[j])) << sums[j] << " and " << others[j];
  }
}

}  // namespace
}  // namespace nmt::kernels
