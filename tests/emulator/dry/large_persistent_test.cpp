// Persistent recurrences with arrays of more than 2^31 elements. A block computes many rows, so a
// whole batch of that size would take hours: the sentences are the first rows of steps that have
// many more.

#include "cuda/kernels/recurrent/persistent/persistent.h"
#include "dry/large.h"

#include <algorithm>
#include <string>

namespace nmt::test {
namespace {

using kernels::Bfloat16;
using kernels::Recurrence;
using kernels::RecurrenceGradient;
using kernels::Unit;

// Sizes so small that a pass is a block for each channel at most, all of which run.
struct Sizes {
  bool normalizes = false;
  std::int64_t groups = 1;  // rearranged if more than one
};
constexpr std::int64_t width = 8, steps = 3, batch = 40;

class LargePersistent : public LargeShapes {
 protected:
  // use(unit, sizes) for matrix units of both number types; memory is freed after each.
  template <class Use>
  void each_unit(Use use) {
    for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
      start(precision);
      for (const Unit& unit : kernels::units()) {
        if (!unit.has_recurrent_product()) continue;
        for (const Sizes& sizes : {Sizes{}, Sizes{.normalizes = true}, Sizes{.groups = 2}}) {
          SCOPED_TRACE(std::string(unit.name) + " " + unit.variant);
          const std::int64_t planes = std::max({unit.inputs, unit.recurrents, unit.late});
          stride = large / ((steps - 1) * planes * width) + 1;
          in = make(planes * rows() * width);
          use(unit, sizes);
          release();
        }
      }
    }
  }
  std::int64_t rows() const { return (steps - 1) * stride + batch; }
  template <class T = float>
  T* written(std::int64_t planes) {
    return planes > 0 ? make<T>(planes * rows() * width) : nullptr;
  }
  float* read() const { return const_cast<float*>(in); }

  Recurrence recurrence(const Unit& unit, const Sizes& sizes) {
    Recurrence a;
    a.cell.unit = &unit;
    a.cell.width = width;
    a.cell.groups = sizes.groups;
    a.cell.rearrange = sizes.groups > 1;
    a.cell.recurrent = a.cell.late = in;
    a.cell.recurrent_transposed = a.cell.late_transposed = in;
    a.cell.vectors = a.cell.positions = in;
    a.cell.position_rows = 1;
    if (sizes.normalizes) a.cell.gain = a.cell.norm_bias = in;
    a.steps = steps;
    a.batch = batch;
    return a;
  }
  cuda::UnitSteps first_step() {
    cuda::UnitSteps first;
    first.rows = batch;
    first.steps = steps;
    first.stride = stride;
    first.x = in;
    for (auto& previous : first.previous) previous = in;
    return first;
  }
  // Bytes of a channel of a sentence, at every step and once; not those of the normalization
  // between blocks.
  void expect_channels(const std::string& kernel, const Sizes& sizes, double bytes,
                       double once = 0) {
    const double channels = batch * width, all = channels * (steps * bytes + once);
    if (sizes.normalizes)
      EXPECT_GT(work(kernel).written, 0.99 * all) << kernel;
    else
      expect_written(kernel, all);
  }

  std::int64_t stride = 0;
  const float* in = nullptr;
};

TEST_F(LargePersistent, Forward) {
  each_unit([&](const Unit& unit, const Sizes& sizes) {
    Recurrence a = recurrence(unit, sizes);
    a.record.u = written(unit.recurrents);
    a.record.late = written(unit.late);
    a.record.late_value = written(unit.late);
    a.record.u_rstd = a.record.late_rstd = make(4 * rows());
    if (sizes.normalizes) {
      a.record.u_normal = written(unit.recurrents);
      a.record.late_normal = written(unit.late);
    }
    if (a.cell.rearrange) a.record.rearranged = written(1);
    cuda::UnitSteps first = first_step();
    for (int p = 0; p < unit.states; ++p) first.next[p] = written(1);
    first.next_rounded = sizes.groups == 1 ? written<Bfloat16>(1) : nullptr;
    cuda::persistent_forward(on(), a, first);
    const bool is_recorded = a.cell.rearrange && unit.recurrents > 0;
    expect_channels("persistent_forward_kernel", sizes,
                    4 * ((sizes.normalizes ? 2 : 1) * (unit.recurrents + unit.late) + unit.states +
                         (unit.late > 0 ? 1 : 0) + (is_recorded ? 1 : 0)) +
                        (first.next_rounded ? 2 : 0));
  });
}

TEST_F(LargePersistent, Backward) {
  each_unit([&](const Unit& unit, const Sizes& sizes) {
    Recurrence a = recurrence(unit, sizes);
    a.record.u = a.record.late = a.record.late_value = read();
    a.record.u_normal = a.record.late_normal = read();
    a.record.u_rstd = a.record.late_rstd = read();
    cuda::UnitSteps first = first_step();
    for (float*& next : first.next) next = read();
    RecurrenceGradient g;
    g.dh = in;
    for (int p = 0; p < unit.states; ++p) g.dinitial[p] = make(batch * width);
    g.cell.dx = written(unit.inputs);
    g.cell.du = written(unit.recurrents);
    g.cell.dlate = written(unit.late);
    g.cell.dx_rounded = written<Bfloat16>(unit.inputs);
    const int products = unit.recurrents + unit.late;
    cuda::CellScratch scratch;
    scratch.sums = make(batch * (unit.vectors + 2 * products) * width);
    scratch.dpositions = written(unit.position_vectors);
    cuda::persistent_backward(on(), a, g, first, scratch, make(batch * width));
    expect_channels("persistent_backward_kernel", sizes,
                    4 * (unit.inputs + products + unit.position_vectors) + 2 * unit.inputs,
                    4 * (unit.states + unit.vectors + (unit.late > 0 && a.cell.rearrange ? 1 : 0)));
  });
}

}  // namespace
}  // namespace nmt::test
