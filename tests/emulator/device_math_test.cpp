// The device's exp, sigmoid, tanh and softplus with the largest documented errors of the
// special-function unit.

#define NMT_EMULATED_DEVICE_MATH
#include "kernels/math.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace nmt::math {
namespace {

struct Worst {
  double error = 0;
  float at = 0;
  void see(double e, float x) {
    if (!(e <= error)) error = e, at = x;
  }
};

template <class Body>
void for_floats(Body&& body) {
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 9973) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (!std::isnan(x)) body(x);
  }
  for (int i = -400000; i <= 400000; ++i) body(static_cast<float>(i) * 2.5e-4f);
}

TEST(DeviceMath, IsWithinItsBounds) {
  Worst of_exp, of_negative, of_sigmoid, of_tanh, of_softplus, of_root;
  int clamped = 0;
  for_floats([&](float x) {
    const float y = math::exp(x);
    if (x < -87.0f || x > 87.0f)
      clamped += y != math::exp(x < 0 ? -87.0f : 87.0f);
    else
      of_exp.see(std::abs(y / std::exp(double{x}) - 1), x);
    if (x <= 0)
      of_negative.see(std::abs(math::exp_of_negative(x) - std::exp(double{x})), x);
    else if (x >= 1.17549435e-38f && !std::isinf(x))
      of_root.see(std::abs(math::device::square_root(x) / std::sqrt(double{x}) - 1), x);
    of_sigmoid.see(std::abs(math::sigmoid(x) - 1 / (1 + std::exp(-double{x}))), x);
    of_tanh.see(std::abs(math::tanh(x) - std::tanh(double{x})), x);
    if (!std::isinf(x))
      of_softplus.see(std::abs(math::softplus(x) - (std::max(double{x}, 0.0) +
                                                    std::log1p(std::exp(-std::abs(double{x}))))) /
                          std::max(1.0, double{x}),
                      x);
  });
  EXPECT_EQ(clamped, 0);
  EXPECT_LT(of_exp.error, 4e-7) << of_exp.at;
  EXPECT_LT(of_negative.error, 3e-7) << of_negative.at;
  EXPECT_LT(of_root.error, 2e-7) << of_root.at;
  EXPECT_LT(of_sigmoid.error, 3e-7) << of_sigmoid.at;
  EXPECT_LT(of_tanh.error, 5e-7) << of_tanh.at;
  EXPECT_LT(of_softplus.error, 4e-7) << of_softplus.at;
  EXPECT_GT(of_exp.error, 1e-7);  // the errors of the unit are there
}

TEST(DeviceMath, KeepsNanAndLimits) {
  EXPECT_EQ(math::exp(0.0f), 1.0f);
  for (const float nan : {NAN, -NAN, std::bit_cast<float>(0x7F800001u)}) {
    EXPECT_TRUE(std::isnan(math::exp(nan)));
    EXPECT_TRUE(std::isnan(math::exp_of_negative(nan)));
    EXPECT_TRUE(std::isnan(math::sigmoid(nan)));
    EXPECT_TRUE(std::isnan(math::tanh(nan)));
  }
  EXPECT_TRUE(std::isfinite(math::exp(INFINITY)));
  EXPECT_GT(math::exp(-INFINITY), 1.17549435e-38f);
  EXPECT_NEAR(math::sigmoid(INFINITY), 1.0f, 3e-7);
  EXPECT_EQ(math::exp_of_negative(0.0f), 1.0f);
  EXPECT_EQ(math::exp_of_negative(-INFINITY), 0.0f);
  EXPECT_EQ(math::sigmoid(-INFINITY), 0.0f);
  EXPECT_NEAR(math::tanh(INFINITY), 1.0f, 5e-7);
  EXPECT_NEAR(math::tanh(-INFINITY), -1.0f, 5e-7);
}

}  // namespace
}  // namespace nmt::math
