// Prints the units of a build. Checks the gradients of Qrnn (examples/custom_unit) in double
// against central differences; exits 1 if one differs.

#include "units/all.h"

#include <cmath>
#include <cstdio>

namespace nmt::units {
namespace {

using Unit = Qrnn;

double forward(const Step<double, Unit>& step) {
  double next[Unit::states];
  Unit::forward(step, next);
  return next[0];
}

/// Largest difference between a gradient and its central difference at this step.
double error_at(Step<double, Unit> step) {
  Step<double, Unit> gradient{};
  const double one[Unit::states] = {1};
  Unit::backward(step, one, gradient);
  constexpr double h = 1e-6;
  double worst = 0;
  const auto compare = [&](double& value, double derivative) {
    const double before = value;
    value = before + h;
    const double above = forward(step);
    value = before - h;
    const double below = forward(step);
    value = before;
    worst = std::fmax(worst, std::fabs((above - below) / (2 * h) - derivative));
  };
  for (int i = 0; i < Unit::inputs; ++i) compare(step.x[i], gradient.x[i]);
  for (int i = 0; i < Unit::states; ++i) compare(step.s[i], gradient.s[i]);
  return worst;
}

}  // namespace
}  // namespace nmt::units

int main() {
#define NMT_UNIT(name, ...) std::puts(name);
#include "units/units.def"
#undef NMT_UNIT
  nmt::units::Step<double, nmt::units::Qrnn> step{};
  for (int i = 0; i < 20; ++i) {
    step.x[0] = std::sin(i);
    step.x[1] = std::cos(3 * i);
    step.s[0] = std::sin(5 * i + 1);
    if (nmt::units::error_at(step) > 1e-8) return 1;
  }
}
