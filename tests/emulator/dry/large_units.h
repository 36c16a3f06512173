#pragma once

// Recurrent units in dry runs with more than 2^31 elements.

#include "dry/large.h"
#include "kernels/recurrent/unit.h"

#include <algorithm>
#include <string>
#include <vector>

namespace nmt::test {

class WithLargeUnits : public LargeShapes {
 protected:
  static constexpr std::int64_t width = 256;
  // Of an array of one plane: where rows are a block each, the last one that runs is at 95 %.
  static constexpr std::int64_t elements = (std::int64_t{1} << 31) / 8 * 9;

  // use(unit) for the units of which `selects` is true, one of each shape; the memory is freed
  // after each.
  template <class Selects, class Use>
  void each_unit(std::int64_t of_steps, Selects selects, Use use) {
    std::vector<std::vector<int>> shapes;
    for (const kernels::Unit& unit : kernels::units()) {
      const std::vector<int> shape{unit.inputs,  unit.recurrents, unit.late,
                                   unit.vectors, unit.states,     unit.position_vectors};
      if (!selects(unit) || std::ranges::find(shapes, shape) != shapes.end()) continue;
      shapes.push_back(shape);
      SCOPED_TRACE(std::string(unit.name) + " " + unit.variant);
      const std::int64_t planes = std::max({unit.inputs, unit.recurrents, unit.late});
      steps = of_steps;
      batch = elements / (steps * width) + 1;
      in = make(planes * steps * batch * width);
      use(unit);
      release();
    }
  }
  static bool any(const kernels::Unit&) { return true; }
  static bool is_element_wise(const kernels::Unit& unit) { return !unit.has_recurrent_product(); }
  static bool is_matrix(const kernels::Unit& unit) { return unit.has_recurrent_product(); }

  // Memory that kernels write: `planes` numbers for each channel and step; null for none.
  template <class T = float>
  T* written(std::int64_t planes) {
    return planes > 0 ? make<T>(planes * steps * batch * width) : nullptr;
  }
  // What kernels only read, in place of what they have written.
  float* read() const { return const_cast<float*>(in); }
  void expect_channels(const std::string& kernel, double bytes_of_channel, std::int64_t of_steps) {
    expect_written(kernel, bytes_of_channel * static_cast<double>(of_steps * batch * width));
  }

  std::int64_t steps = 0, batch = 0;
  const float* in = nullptr;  // zeros
};

}  // namespace nmt::test
