#include "nn/builder.h"

#include "core/error.h"
#include "tests/support/engine.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

namespace nmt {
namespace {

using Kind = Initialization;
using Init = ParameterSet::Init;

struct Drawn {
  explicit Drawn(Initializer initializer) : builder(engine.context, set, engine.rng, initializer) {}
  std::vector<double> operator()(Shape shape, Init init, int planes = 1) {
    return test::doubles(builder.add(std::to_string(set.all().size()), shape, init, planes).value);
  }
  test::Engine engine;
  ParameterSet set;
  Builder builder;
};

// Kolmogorov's distance between the values and a distribution, times sqrt(n): above 1.95 in one
// draw of a thousand.
double distance(std::vector<double> values, const std::function<double(double)>& cumulative) {
  std::sort(values.begin(), values.end());
  const double n = static_cast<double>(values.size());
  double most = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double f = cumulative(values[i]);
    most = std::max({most, f - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - f});
  }
  return most * std::sqrt(n);
}
std::function<double(double)> uniform(double bound) {
  return [=](double x) { return std::clamp((x + bound) / (2 * bound), 0.0, 1.0); };
}
std::function<double(double)> normal(double deviation) {
  return [=](double x) { return 0.5 * std::erfc(-x / (deviation * std::sqrt(2.0))); };
}

// Rows or columns of a plane, whichever are fewer, are orthogonal and as long as the scale.
void expect_orthogonal(const std::vector<double>& values, std::int64_t rows, std::int64_t stride,
                       int planes, double scale) {
  const std::int64_t columns = stride / planes, vectors = std::min(rows, columns),
                     n = std::max(rows, columns);
  for (int plane = 0; plane < planes; ++plane)
    for (std::int64_t i = 0; i < vectors; ++i)
      for (std::int64_t j = 0; j <= i; ++j) {
        double product = 0;
        const auto at = [&](std::int64_t v, std::int64_t k) {
          return rows <= columns ? values[v * stride + plane * columns + k]
                                 : values[k * stride + plane * columns + v];
        };
        for (std::int64_t k = 0; k < n; ++k) product += at(i, k) * at(j, k);
        ASSERT_NEAR(product, i == j ? scale * scale : 0.0, 1e-5) << i << ' ' << j;
      }
}

TEST(Initializer, UniformInEveryMatrix) {
  Drawn draw({Kind::uniform, 0.08f});
  for (const Init init : {Init::glorot, Init::orthogonal, Init::embedding})
    EXPECT_LT(distance(draw({40, 3 * 40}, init, 3), uniform(0.08)), 1.95);
  EXPECT_EQ(draw({9}, Init::zero), std::vector<double>(9, 0.0));
  EXPECT_EQ(draw({9}, Init::one), std::vector<double>(9, 1.0));
}

TEST(Initializer, Normal) {
  Drawn draw({Kind::normal, 0.3f});
  for (const Init init : {Init::glorot, Init::orthogonal, Init::embedding})
    EXPECT_LT(distance(draw({60, 70}, init), normal(0.3)), 1.95);
  EXPECT_EQ(draw({9}, Init::one), std::vector<double>(9, 1.0));
}

TEST(Initializer, GlorotUniformOfEachPlane) {
  Drawn draw({Kind::glorot_uniform, 2.0f});
  for (const Init init : {Init::glorot, Init::orthogonal})
    EXPECT_LT(distance(draw({50, 4 * 50}, init, 4), uniform(2 * std::sqrt(6.0 / 100))), 1.95);
  EXPECT_LT(distance(draw({300, 20}, Init::embedding), uniform(2 * std::sqrt(6.0 / 320))), 1.95);
}

TEST(Initializer, Orthogonal) {
  Drawn draw({Kind::orthogonal, 0.5f});
  expect_orthogonal(draw({20, 3 * 20}, Init::orthogonal, 3), 20, 60, 3, 0.5);
  expect_orthogonal(draw({12, 2 * 30}, Init::glorot, 2), 12, 60, 2, 0.5);
  expect_orthogonal(draw({30, 2 * 12}, Init::glorot, 2), 30, 24, 2, 0.5);
  EXPECT_LT(distance(draw({300, 25}, Init::embedding), normal(0.5 / 5)), 1.95);
  const std::vector<double> blocks = draw({3, 6, 2 * 10}, Init::glorot, 2);  // each block by itself
  for (int block = 0; block < 3; ++block)
    expect_orthogonal({blocks.begin() + block * 120, blocks.begin() + (block + 1) * 120}, 6, 20, 2,
                      0.5);
}

// Vectors over several blocks, square and not, and as many threads as there are: the same values.
TEST(Initializer, OrthogonalOverManyVectors) {
  std::vector<std::vector<double>> drawn;
  for (const int threads : {1, 3}) {
    test::Engine engine(threads);
    ParameterSet set;
    const Parameter& p =
        set.add(engine.context, "p", {200, 2 * 150}, Init::orthogonal, engine.rng, 2);
    const Parameter& after = set.add(engine.context, "after", {100, 100}, Init::normal, engine.rng);
    drawn.push_back(test::doubles(p.value));
    expect_orthogonal(drawn.back(), 200, 300, 2, 1);
    EXPECT_LT(distance(test::doubles(after.value), normal(1)), 1.95);
    drawn.push_back(test::doubles(after.value));
  }
  EXPECT_EQ(drawn[0], drawn[2]);
  EXPECT_EQ(drawn[1], drawn[3]);
}

// Haar measure: every entry has mean 0, every square mean 1/n, and the determinant is 1 as often as
// -1. (A QR factorization whose signs are not put right has a diagonal of one sign.)
TEST(Initializer, OrthogonalMatricesAreDrawnUniformly) {
  constexpr int draws = 2000, n = 3;
  Drawn draw({Kind::orthogonal, 1.0f});
  double mean[n * n]{}, square[n * n]{}, determinants = 0;
  for (int d = 0; d < draws; ++d) {
    const std::vector<double> q = draw({n, n}, Init::orthogonal);
    for (int i = 0; i < n * n; ++i) {
      mean[i] += q[i] / draws;
      square[i] += q[i] * q[i] / draws;
    }
    determinants += (q[0] * (q[4] * q[8] - q[5] * q[7]) - q[1] * (q[3] * q[8] - q[5] * q[6]) +
                     q[2] * (q[3] * q[7] - q[4] * q[6])) /
                    draws;
  }
  const double sigma = 1 / std::sqrt(static_cast<double>(draws));
  for (int i = 0; i < n * n; ++i) {
    EXPECT_NEAR(mean[i], 0, 4 * sigma / std::sqrt(3.0)) << i;
    EXPECT_NEAR(square[i], 1.0 / n, 4 * sigma * std::sqrt(1.0 / 5 - 1.0 / 9))
        << i;  // an entry is uniform in [-1,1] for n = 3
  }
  EXPECT_NEAR(determinants, 0, 4 * sigma);
}

TEST(Initializer, StandardLeavesTheChoiceToTheLayers) {
  Drawn draw({});
  expect_orthogonal(draw({20, 3 * 20}, Init::orthogonal, 3), 20, 60, 3, 1);
  EXPECT_LT(distance(draw({50, 4 * 30}, Init::glorot, 4), uniform(std::sqrt(6.0 / 80))), 1.95);
  EXPECT_LT(distance(draw({300, 25}, Init::embedding), normal(1.0 / 5)), 1.95);
}

TEST(Initializer, OfASpec) {
  ModelSpec spec;
  EXPECT_EQ(Initializer::of(spec).kind, Kind::standard);
  EXPECT_EQ(Initializer::of(spec).scale, 1.0f);
  spec.init = Initialization::uniform;
  EXPECT_EQ(Initializer::of(spec).scale, 0.08f);
  spec.init_scale = 0.2;
  EXPECT_EQ(Initializer::of(spec).scale, 0.2f);
  spec.init = Initialization::normal;
  spec.init_scale = -1;
  EXPECT_THROW(Initializer::of(spec), Error);
}

}  // namespace
}  // namespace nmt
