#include "kernels/math.h"

#include "core/threads/thread_pool.h"
#include "kernels/pointwise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::math {
namespace {

// Every 997th bit pattern of a float, NaNs included. 997 is prime, so all exponents and many
// mantissas are covered.
template <class Body>
void for_all_floats(Body&& body) {
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 997)
    body(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
}

// A dense scan where the functions are not constant.
template <class Body>
void for_usual_floats(Body&& body) {
  for (int i = -2000000; i <= 2000000; ++i) body(static_cast<float>(i) * 5e-5f);
}

struct Worst {
  double error = 0;
  float at = 0;
  void see(double e, float x) {
    if (!(e <= error)) error = e, at = x;
  }
};

TEST(Math, ExpIsWithinItsRelativeBoundAndClamped) {
  Worst worst;
  int outside = 0;
  const auto check = [&](float x) {
    const float y = math::exp(x);
    if (std::isnan(x)) {
      outside += !std::isnan(y);
    } else if (x < -87.0f || x > 87.0f) {
      outside += y != math::exp(x < 0 ? -87.0f : 87.0f);
    } else {
      worst.see(std::abs(y / std::exp(double{x}) - 1), x);
    }
  };
  for_all_floats(check);
  for_usual_floats(check);
  EXPECT_EQ(outside, 0);
  EXPECT_LT(worst.error, 2e-7) << worst.at;
  EXPECT_TRUE(std::isfinite(math::exp(INFINITY)));
  EXPECT_GT(math::exp(-INFINITY), 1.17549435e-38f);  // not subnormal
}

TEST(Math, Exp2IsWithinItsRelativeBoundAndClamped) {
  Worst worst;
  int outside = 0;
  const auto check = [&](float x) {
    const float y = math::exp2(x);
    if (std::isnan(x)) {
      outside += !std::isnan(y);
    } else if (std::abs(x) > 126.0f) {
      outside += y != (x < 0 ? 0x1p-126f : 0x1p126f);
    } else {
      worst.see(std::abs(y / std::exp2(double{x}) - 1), x);
    }
  };
  for_all_floats(check);
  for_usual_floats(check);
  EXPECT_EQ(outside, 0);
  EXPECT_LT(worst.error, 1.5e-7) << worst.at;
}

TEST(Math, ExpOfNegativeIsWithinItsBound) {
  Worst worst;
  int lost = 0;
  const auto check = [&](float x) {
    if (x > 0) return;
    const float y = math::exp_of_negative(x);
    if (std::isnan(x))
      lost += !std::isnan(y);
    else
      worst.see(std::abs(y - std::exp(double{x})), x);
  };
  for_all_floats(check);
  for_usual_floats(check);
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(math::exp_of_negative(0.0f), 1.0f);
  EXPECT_LT(worst.error, 2e-7) << worst.at;
}

TEST(Math, SigmoidIsWithinItsBound) {
  Worst worst;
  int lost = 0;
  const auto check = [&](float x) {
    const float y = math::sigmoid(x);
    if (std::isnan(x))
      lost += !std::isnan(y);
    else
      worst.see(std::abs(y - 1 / (1 + std::exp(-double{x}))), x);
  };
  for_all_floats(check);
  for_usual_floats(check);
  EXPECT_EQ(lost, 0);
  EXPECT_LT(worst.error, 2e-7) << worst.at;
}

TEST(Math, TanhIsWithinItsBound) {
  Worst worst;
  int lost = 0;
  const auto check = [&](float x) {
    const float y = math::tanh(x);
    if (std::isnan(x))
      lost += !std::isnan(y);
    else
      worst.see(std::abs(y - std::tanh(double{x})), x);
  };
  for_all_floats(check);
  for_usual_floats(check);
  EXPECT_EQ(lost, 0);
  EXPECT_LT(worst.error, 3e-7) << worst.at;
}

TEST(Math, LogIsWithinItsBoundsAndClamped) {
  Worst relative, absolute;
  int outside = 0;
  const auto check = [&](float x) {
    const float y = math::log(x);
    if (std::isnan(x)) {
      outside += !std::isnan(y);
    } else if (!(x >= 1.17549435e-38f) || std::isinf(x)) {
      outside += y != math::log(x > 0 && std::isinf(x) ? 3.4028235e38f : 1.17549435e-38f);
    } else {
      const double exact = std::log(double{x}), error = std::abs(y - exact);
      relative.see(x == 1 ? error : error / std::abs(exact), x);
      if (std::abs(exact) < 1) absolute.see(error, x);
    }
  };
  for_all_floats(check);
  for_usual_floats(check);
  EXPECT_EQ(outside, 0);
  EXPECT_LT(relative.error, 1e-7) << relative.at;
  EXPECT_LT(absolute.error, 6e-8) << absolute.at;
}

TEST(Math, SoftplusIsWithinItsBound) {
  Worst worst;
  int lost = 0;
  const auto check = [&](float x) {
    const float y = math::softplus(x);
    if (std::isnan(x)) {
      lost += !std::isnan(y);
    } else if (std::isinf(x)) {
      lost += x > 0 ? !std::isinf(y) : y > 1e-37f;
    } else {
      const double exact = std::max(double{x}, 0.0) + std::log1p(std::exp(-std::abs(double{x})));
      worst.see(std::abs(y - exact) / std::max(1.0, double{x}), x);
    }
  };
  for_all_floats(check);
  for_usual_floats(check);
  EXPECT_EQ(lost, 0);
  EXPECT_LT(worst.error, 2e-7) << worst.at;
}

// The same code, vectorized in the kernels.
TEST(Math, TanhKernelIsWithinTheBoundToo) {
  std::vector<float> x;
  const auto take = [&](float v) { x.push_back(v); };
  for_all_floats(take);
  for_usual_floats(take);
  std::vector<float> y(x.size());
  ThreadPool pool(2);
  kernels::tanh_forward({&pool}, static_cast<std::int64_t>(x.size()), x.data(), y.data());
  Worst worst;
  int lost = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (std::isnan(x[i]))
      lost += !std::isnan(y[i]);
    else
      worst.see(std::abs(y[i] - std::tanh(double{x[i]})), x[i]);
  EXPECT_EQ(lost, 0);
  EXPECT_LT(worst.error, 3e-7) << worst.at;
}

TEST(Math, DoubleIsTheStandardLibrary) {
  for (double x : {-50.0, -1.5, 0.0, 0.25, 30.0}) {
    EXPECT_EQ(math::exp(x), std::exp(x));
    EXPECT_EQ(math::tanh(x), std::tanh(x));
    EXPECT_EQ(math::log(x * x + 1), std::log(x * x + 1));
    EXPECT_EQ(math::sqrt(x * x), std::abs(x));
    EXPECT_NEAR(math::softplus(x), std::log(1 + std::exp(x)), 1e-14);
    EXPECT_NEAR(math::sigmoid(x), 1 / (1 + std::exp(-x)), 1e-15);
  }
}

TEST(Math, PortableLogIsWithinItsBounds) {
  Worst relative, absolute;
  const auto check = [&](double x) {
    const long double expected = std::log(static_cast<long double>(x)),
                      error = std::abs(static_cast<long double>(math::portable_log(x)) - expected);
    if (x > 0.99 && x < 1.01)
      absolute.see(static_cast<double>(error), static_cast<float>(x));
    else
      relative.see(static_cast<double>(error / std::abs(expected)), static_cast<float>(x));
  };
  for (int i = -70000; i <= 70000; ++i) check(std::exp(i * 0.01));
  for (int i = 1; i <= 400000; ++i) check(i * 1e-5);
  EXPECT_LT(relative.error, 1e-15) << relative.at;
  EXPECT_LT(absolute.error, 1e-17) << absolute.at;
  EXPECT_EQ(math::portable_log(1.0), 0.0);
  EXPECT_EQ(math::portable_log(0.0), -INFINITY);
  EXPECT_EQ(math::portable_log(double{INFINITY}), INFINITY);
  EXPECT_EQ(math::portable_log(5e-324), std::log(5e-324));
  EXPECT_TRUE(std::isnan(math::portable_log(double{NAN})));
}

}  // namespace
}  // namespace nmt::math
