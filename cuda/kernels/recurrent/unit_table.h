#pragma once

#include "core/error.h"
#include "cuda/kernels/recurrent/unit.h"
#include "cuda/kernels/recurrent/unit_step.h"

#include <span>

namespace nmt::cuda {

template <class U, template <class> class Steps>
constexpr UnitKernels describe_kernels() {
  using Of = Steps<U>;
  if constexpr (U::late > 0)
    return {Of::forward, Of::backward, Of::late_value, Of::late_backward};
  else
    return {Of::forward, Of::backward, nullptr, nullptr};
}

/// The index of a unit in kernels::units(). Error: the unit is not in this list.
inline std::size_t number_of(const kernels::Unit& unit) {
  const std::span<const kernels::Unit> all = kernels::units();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (&all[i] == &unit) return i;
  NMT_FAIL("unit {}: it is not one of kernels::units()", unit.name);
}

/// The kernels of a unit, one of kernels::units(): the static functions of Steps<U> with the names
/// of the members of UnitKernels.
template <template <class> class Steps>
const UnitKernels& kernels_in_table(const kernels::Unit& unit) {
  using namespace units;
  static constexpr UnitKernels table[] = {
#define NMT_UNIT(name, variant, ...) describe_kernels<__VA_ARGS__, Steps>(),
#include "units/units.def"
#undef NMT_UNIT
  };
  return table[number_of(unit)];
}

}  // namespace nmt::cuda
