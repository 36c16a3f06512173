#pragma once

// An op's float values and gradients against a reference in double that shares none of its code.
//
// Gradients: slopes of the reference along a random direction of the outputs, by central
// differences of two step sizes, extrapolated (Richardson); a third step size guards against
// curvature.
// Tolerances: the reference is evaluated again with every operand perturbed by one relative
// rounding. A chain of n operations that round independently moves a result sqrt(n) times as far;
// six such deviations are allowed. What they resolve is known (resolution()), so that a test can
// refuse tolerances that would hide a fault.

#include "autograd/tape.h"
#include "tests/support/engine.h"
#include "tests/support/reference.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::test {

/// Relative error of one operation: float32 arithmetic, or the bound of kernels/math.h for tanh.
constexpr double one_rounding = 0x1p-24, one_function = 3e-7;

/// How an op rounds: the error of one operation, and how many a result passes one after another.
struct Rounding {
  double unit;
  std::int64_t chain;
};

class GradientCheck {
 public:
  GradientCheck(Engine& engine, Rounding rounding) : engine_(engine), rounding_(rounding) {}

  /// Of each operand since it was last cleared: the best ratio of tolerance and largest gradient;
  /// 0 where all gradients are 0.
  static std::map<std::string, double>& resolution() {
    static std::map<std::string, double> best;
    return best;
  }

  /// A tensor that the op reads; `at`: its numbers, which the reference reads. A gradient that is
  /// there already must be added to: half of the operands have one.
  void reads(const std::string& name, Row& at, const Var& var) {
    const double prior = prefill(var->value.shape(), var->gradient);
    operands_.push_back({name, &at, &var->gradient, prior, {}});
  }
  void reads(const std::string& name, Row& at, Parameter& parameter) {
    const double prior = prefill(parameter.shape, parameter.gradient);
    operands_.push_back({name, &at, &parameter.gradient, prior, {}});
  }
  /// A result that gradients flow from, along a random direction.
  void gives(const std::string& name, const Var& var) {
    var->gradient = engine_.random(var->value.shape());
    gives(name, doubles(var->value), doubles(var->gradient));
  }
  /// A result whose values alone are compared.
  void gives(const std::string& name, const Tensor& value) {
    gives(name, doubles(value), Row(value.elements()));
  }
  void gives(const std::string& name, const Row& value, const Row& direction) {
    outputs_.push_back({name, values_.size(), value.size()});
    values_.insert(values_.end(), value.begin(), value.end());
    direction_.insert(direction_.end(), direction.begin(), direction.end());
  }

  /// Compares the values, runs the tape backward and compares the gradients. `reference`: all
  /// results, one after another, of the operands as they are. `samples`: places of each operand.
  void run(Tape& tape, const std::function<Row()>& reference, std::size_t samples = 16) {
    reference_ = reference;
    const Row expected = reference_();
    ASSERT_EQ(expected.size(), values_.size()) << "results of the reference";
    for (Operand& operand : operands_) choose(operand, samples);
    const Moves moves = perturbed(expected);
    for (const Output& output : outputs_) compare_values(output, expected, moves.values);
    tape.backward();
    for (std::size_t i = 0; i < operands_.size(); ++i)
      compare_gradients(operands_[i], moves.gradients[i]);
  }

 private:
  struct Operand {
    std::string name;
    Row* at;
    const Tensor* gradient;
    double prior;
    std::vector<std::size_t> places;
  };
  struct Output {
    std::string name;
    std::size_t first, count;
  };
  /// Mean squares of how far one rounding of all operands moves the results.
  struct Moves {
    Row values;
    std::vector<Row> gradients;
  };
  static constexpr double step_size = 1e-3;
  static constexpr int trials = 3;

  double prefill(const Shape& shape, Tensor& gradient) {
    const float prior = engine_.rng.below(2) ? 0.25f : 0.0f;
    if (prior != 0.0f && !gradient) gradient = engine_.context.empty(shape);
    if (gradient) std::fill_n(gradient.f32(), shape.elements(), prior);
    return prior;
  }
  void choose(Operand& operand, std::size_t samples) {
    const std::size_t size = operand.at->size();
#if defined(__SANITIZE_ADDRESS__)  // watches the op, which runs once, not this reference
    samples = std::min<std::size_t>(samples, 4);
#endif
    for (std::size_t i = 0; i < std::min(samples, size); ++i)
      operand.places.push_back(size <= samples ? i : engine_.rng.below(size));
  }
  double loss() const {
    const Row out = reference_();
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * direction_[i];
    return sum;
  }
  double difference(double& x, double step) const {
    const double keep = x;
    x = keep + step;
    const double above = loss();
    x = keep - step;
    const double below = loss();
    x = keep;
    return (above - below) / (2 * step);
  }
  Row rough_slopes(const Operand& operand) const {
    Row slopes;
    for (const std::size_t i : operand.places)
      slopes.push_back(difference((*operand.at)[i], step_size));
    return slopes;
  }
  void perturb(Row& row) {
    for (double& x : row) x *= 1 + (engine_.rng.below(2) ? rounding_.unit : -rounding_.unit);
  }
  Moves perturbed(const Row& expected) {
    Moves moves{Row(expected.size()), {}};
    std::vector<Row> base, keep;
    for (const Operand& operand : operands_) {
      base.push_back(rough_slopes(operand));
      keep.push_back(*operand.at);
      moves.gradients.emplace_back(operand.places.size());
    }
    const Row direction = direction_;
    const auto add_squares = [](Row& sums, const Row& a, const Row& b) {
      for (std::size_t i = 0; i < sums.size(); ++i)
        sums[i] += (a[i] - b[i]) * (a[i] - b[i]) / trials;
    };
    for (int trial = 0; trial < trials; ++trial) {
      for (const Operand& operand : operands_) perturb(*operand.at);
      perturb(direction_);
      add_squares(moves.values, reference_(), expected);
      for (std::size_t i = 0; i < operands_.size(); ++i)
        add_squares(moves.gradients[i], rough_slopes(operands_[i]), base[i]);
      for (std::size_t i = 0; i < operands_.size(); ++i) *operands_[i].at = keep[i];
      direction_ = direction;
    }
    return moves;
  }
  /// Six deviations: of this number's own moves and of those of its tensor on average.
  double tolerance(const Row& squares, std::size_t first, std::size_t count, std::size_t i) const {
    double mean = 0;
    for (std::size_t j = first; j < first + count; ++j)
      mean += squares[j] / static_cast<double>(count);
    return 6 * std::sqrt(static_cast<double>(rounding_.chain) * (squares[i] + mean));
  }
  void compare_values(const Output& output, const Row& expected, const Row& squares) const {
    for (std::size_t i = output.first; i < output.first + output.count; ++i)
      ASSERT_NEAR(
          values_[i], expected[i],
          tolerance(squares, output.first, output.count, i) + one_rounding * std::abs(expected[i]))
          << output.name << ' ' << i - output.first;
  }
  void compare_gradients(const Operand& operand, const Row& squares) const {
    ASSERT_TRUE(*operand.gradient) << "no gradient of " << operand.name;
    ASSERT_EQ(static_cast<std::size_t>(operand.gradient->elements()), operand.at->size());
    double largest = 0, loosest = 0;
    for (std::size_t n = 0; n < operand.places.size(); ++n) {
      const std::size_t i = operand.places[n];
      double& x = (*operand.at)[i];
      const double bound = tolerance(squares, 0, squares.size(), n);
      double slope = 0, finer = 0;
      // A kink, as in relu, within the step: a smaller one does not reach it.
      for (const double step : {step_size, step_size / 8, step_size / 64}) {
        const double coarse = difference(x, step), middle = difference(x, step / 2),
                     fine = difference(x, step / 4);
        slope = (4 * middle - coarse) / 3;
        finer = (4 * fine - middle) / 3;
        if (std::abs(slope - finer) <= 0.1 * bound + 1e-11) break;
      }
      const double stored = one_rounding * (std::abs(slope + operand.prior) + operand.prior);
      ASSERT_NEAR(slope, finer, 0.1 * bound + 1e-11) << "curvature at " << operand.name << ' ' << i;
      EXPECT_NEAR(operand.gradient->f32()[i] - operand.prior, finer, bound + stored)
          << operand.name << ' ' << i;
      largest = std::max(largest, std::abs(finer));
      loosest = std::max(loosest, bound + stored);
    }
    double& resolved = resolution()[operand.name];
    if (largest > 0)
      resolved = resolved > 0 ? std::min(resolved, loosest / largest) : loosest / largest;
  }

  Engine& engine_;
  Rounding rounding_;
  std::vector<Operand> operands_;
  std::vector<Output> outputs_;
  Row values_, direction_;
  std::function<Row()> reference_;
};

}  // namespace nmt::test
