#include "core/rng.h"

#include <cmath>

namespace nmt {

float Rng::normal() {
  // u is in (0, 1], so that the logarithm is finite.
  const double u = (static_cast<double>((*this)()) + 1.0) * 0x1p-32;
  const double v = static_cast<double>((*this)()) * 0x1p-32;
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v));
}

}  // namespace nmt
