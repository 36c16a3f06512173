// Prints the units of a build. Checks the units of examples/custom_unit in double: their gradients
// against central differences, and a step of DeltaNet against its equations; exits 1 if one
// differs.

#include "units/all.h"

#include <cmath>
#include <cstdio>

namespace nmt::units {
namespace {

/// The central difference of a function of `value`.
template <class Function>
double slope(double& value, const Function& function) {
  constexpr double h = 1e-6;
  const double before = value;
  value = before + h;
  const double above = function();
  value = before - h;
  const double below = function();
  value = before;
  return (above - below) / (2 * h);
}

double forward(const Step<double, Qrnn>& step) {
  double next[Qrnn::states];
  Qrnn::forward(step, next);
  return next[0];
}

/// NaN if one of them is.
double larger(double a, double b) {
  return std::isnan(a) || b <= a ? a : b;
}

/// Largest difference between a gradient and its central difference at this step.
double error_at(Step<double, Qrnn> step) {
  Step<double, Qrnn> gradient{};
  const double one[Qrnn::states] = {1};
  Qrnn::backward(step, one, gradient);
  double worst = 0;
  const auto compare = [&](double& value, double derivative) {
    worst = larger(worst, std::fabs(slope(value, [&] { return forward(step); }) - derivative));
  };
  for (int i = 0; i < Qrnn::inputs; ++i) compare(step.x[i], gradient.x[i]);
  for (int i = 0; i < Qrnn::states; ++i) compare(step.s[i], gradient.s[i]);
  return worst;
}

constexpr int width = 3;  // of keys and queries

/// One channel of DeltaNet at one step: its input, its row of the state and what its head projects.
struct DeltaStep {
  double x, state[width], planes[2 * width], scalar;
};

struct DeltaHead {
  double decay[width], key[width], query[width], beta;

  HeadOutput<double> output() { return {decay, key, query, &beta, nullptr}; }
};

ChannelStep<double, DeltaNet> channel(const DeltaStep& step, double beta) {
  ChannelStep<double, DeltaNet> channel{};
  channel.x[0] = step.x;
  channel.extra[0] = beta;
  return channel;
}

/// The output by the unit: the four lines of units/matrix/matrix_state.h.
double by_unit(const DeltaStep& step) {
  DeltaHead head{};
  DeltaNet::prepare<double>(width, {step.planes, &step.scalar, nullptr}, head.output());
  const ChannelStep<double, DeltaNet> at = channel(step, head.beta);
  double p = 0, y = 0;
  for (int k = 0; k < width; ++k) p += head.key[k] * step.state[k];
  const double w = DeltaNet::write(at, p);
  for (int k = 0; k < width; ++k)
    y += head.query[k] * (head.decay[k] * step.state[k] + w * head.key[k]);
  return DeltaNet::output(at, y);
}

/// The output by the equations of the paper: a row of S' (I - beta k k^T) + beta v k^T, times q.
double by_equations(const DeltaStep& step) {
  const double beta = 1 / (1 + std::exp(-step.scalar));
  const double* const query = step.planes;
  const double* const key = step.planes + width;
  const double query_length = std::hypot(query[0], query[1], query[2]);
  const double key_length = std::hypot(key[0], key[1], key[2]);
  double y = 0;
  for (int j = 0; j < width; ++j) {
    double next = beta * step.x * key[j] / key_length;
    for (int i = 0; i < width; ++i)
      next += step.state[i] * ((i == j) - beta * key[i] * key[j] / (key_length * key_length));
    y += next * query[j] / query_length;
  }
  return normalized_scale * y;
}

/// Largest difference at this step, of the output and of the gradients, in the output's scale.
double error_at(DeltaStep step) {
  double worst = std::fabs(by_unit(step) - by_equations(step));
  DeltaHead head{}, dhead{};
  const HeadInput<const double> in{step.planes, &step.scalar, nullptr};
  DeltaNet::prepare<double>(width, in, head.output());
  const ChannelStep<double, DeltaNet> at = channel(step, head.beta);
  ChannelStep<double, DeltaNet> d{};
  double p = 0, y = 0, dy = 0, dw = 0, dp = 0;
  for (int k = 0; k < width; ++k) p += head.key[k] * step.state[k];
  const double w = DeltaNet::write(at, p);
  double next[width];
  for (int k = 0; k < width; ++k) {
    next[k] = head.decay[k] * step.state[k] + w * head.key[k];
    y += head.query[k] * next[k];
  }
  DeltaNet::output_backward(at, y, 1.0, d, dy);
  for (int k = 0; k < width; ++k) dw += dy * head.query[k] * head.key[k];
  DeltaNet::write_backward(at, p, dw, d, dp);
  DeltaStep gradient{};
  for (int k = 0; k < width; ++k) {
    dhead.query[k] = dy * next[k];
    dhead.key[k] = dy * head.query[k] * w + dp * step.state[k];
    dhead.decay[k] = dy * head.query[k] * step.state[k];
    gradient.state[k] = dy * head.query[k] * head.decay[k] + dp * head.key[k];
  }
  dhead.beta = d.extra[0];
  DeltaNet::prepare_backward<double>(width, in,
                                     {head.decay, head.key, head.query, &head.beta, nullptr},
                                     {dhead.decay, dhead.key, dhead.query, &dhead.beta, nullptr},
                                     {gradient.planes, &gradient.scalar, nullptr});
  gradient.x = d.x[0];
  const auto compare = [&](double& value, double derivative) {
    worst = larger(worst, std::fabs(slope(value, [&] { return by_equations(step); }) - derivative));
  };
  compare(step.x, gradient.x);
  compare(step.scalar, gradient.scalar);
  for (int k = 0; k < width; ++k) compare(step.state[k], gradient.state[k]);
  for (int k = 0; k < 2 * width; ++k) compare(step.planes[k], gradient.planes[k]);
  return worst / normalized_scale;
}

}  // namespace
}  // namespace nmt::units

int main() {
#define NMT_UNIT(name, ...) std::puts(name);
#define NMT_MATRIX_STATE_UNIT(name, ...) std::puts(name);
#include "units/units.def"
#undef NMT_UNIT
  nmt::units::Step<double, nmt::units::Qrnn> step{};
  nmt::units::DeltaStep delta{};
  for (int i = 0; i < 20; ++i) {
    step.x[0] = std::sin(i);
    step.x[1] = std::cos(3 * i);
    step.s[0] = std::sin(5 * i + 1);
    if (!(nmt::units::error_at(step) <= 1e-8)) return 1;
    delta.x = std::cos(2 * i);
    delta.scalar = std::sin(7 * i);
    for (int k = 0; k < nmt::units::width; ++k) delta.state[k] = std::sin(3 * i + 2 * k);
    for (int k = 0; k < 2 * nmt::units::width; ++k) delta.planes[k] = std::cos(i + 5 * k);
    if (!(nmt::units::error_at(delta) <= 1e-7)) return 1;
  }
}
