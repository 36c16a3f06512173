#include "nn/recurrent/gate_start.h"

#include "core/error.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace nmt {
namespace {

// log U(1, T-1): a gate whose bias is log t forgets after about t steps (Tallec & Ollivier, ICLR
// 2018: b_f ~ log U(1, T_max - 1), b_i = -b_f).
std::vector<float> logarithms(Rng rng, std::int64_t width, int steps) {
  if (steps < 3) fail(ExitStatus::usage, "gate-steps: {} is below 3", steps);
  std::vector<float> values(static_cast<std::size_t>(width));
  for (float& value : values)
    value = static_cast<float>(std::log(1 + static_cast<double>(rng.uniform()) * (steps - 2)));
  return values;
}

}  // namespace

float GateStart::constant_of(const kernels::Unit& unit) const {
  return bias != 0 ? static_cast<float>(bias) : unit.gate_bias;
}

bool GateStart::reads(const kernels::Unit& unit, kernels::BiasOf of) const {
  const bool starts_at_zero = kind == GateInit::constant && constant_of(unit) == 0;
  return kind != GateInit::none && !starts_at_zero &&
         std::any_of(unit.gate_biases.begin(), unit.gate_biases.end(),
                     [of](const kernels::GateBias& gate) { return gate.of == of; });
}

void GateStart::set(const Builder& builder, const kernels::Unit& unit, kernels::BiasOf of,
                    Parameter* parameter, std::int64_t width) const {
  if (!reads(unit, of)) return;
  constexpr std::uint32_t gates = 1;  // the use of the generator
  const std::vector<float> start =
      kind == GateInit::chrono
          ? logarithms(builder.generator(gates), width, steps)
          : std::vector<float>(static_cast<std::size_t>(width), constant_of(unit));
  std::vector<float> values(static_cast<std::size_t>(parameter->shape.elements()));
  for (const kernels::GateBias& gate : unit.gate_biases) {
    if (gate.of != of) continue;
    const float factor = kind == GateInit::chrono ? gate.chrono : gate.constant;
    std::transform(start.begin(), start.end(), values.begin() + gate.plane * width,
                   [factor](float x) { return factor * x; });
  }
  builder.set(*parameter, values);
}

}  // namespace nmt
