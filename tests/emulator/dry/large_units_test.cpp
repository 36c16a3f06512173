// Steps of recurrent units with more than 2^31 channels.

#include "dry/large_units.h"

#include "cuda/kernels/recurrent/unit.h"

#include <string>

namespace nmt::test {
namespace {

using cuda::RowNorm;
using cuda::UnitChain;
using cuda::UnitSteps;
using cuda::UnitStepsGradient;
using kernels::Bfloat16;
using kernels::Unit;

// What a kernel writes for a channel in float32 and in bfloat16.
constexpr double plain = sizeof(float), rounded = sizeof(Bfloat16);

class LargeUnits : public WithLargeUnits {
 protected:
  // A step that adds biases to its products, and rounds its results.
  UnitSteps step_of(const Unit& unit) {
    UnitSteps a;
    a.rows = batch;
    a.width = width;
    a.x = a.vectors = a.positions = in;
    a.position_rows = 1;
    a.u = written(unit.recurrents);
    a.late = written(unit.late);
    a.u_bias = a.late_bias = in;
    for (int p = 0; p < unit.states; ++p) {
      a.previous[p] = in;
      a.next[p] = written(1);
    }
    a.next_rounded = written<Bfloat16>(1);
    return a;
  }
  // A backward step, whose u, late and states are read.
  UnitSteps step_back_of(const Unit& unit) {
    UnitSteps a;
    a.rows = batch;
    a.width = width;
    a.x = a.vectors = a.positions = in;
    a.position_rows = 1;
    a.u = a.late = read();
    for (int p = 0; p < unit.states; ++p) {
      a.previous[p] = in;
      a.next[p] = read();
    }
    return a;
  }
  // `sums`: the sums of a row over the steps, in multiples of the width.
  UnitStepsGradient gradient_of(const Unit& unit, std::int64_t sums, bool has_carry = true) {
    UnitStepsGradient g;
    g.dh = in;
    for (int p = 0; p < unit.states && has_carry; ++p) g.carry[p] = written(1);
    g.dx = written(unit.inputs);
    g.du = written(unit.recurrents);
    g.dlate = written(unit.late);
    g.du_rounded = written<Bfloat16>(unit.recurrents);
    g.dlate_rounded = written<Bfloat16>(unit.late);
    g.sums_stride = sums * width;
    g.vector_sums = written(sums);
    g.dpositions = written(unit.position_vectors);
    return g;
  }
  // Layer normalization of `planes` planes.
  RowNorm norm_of(std::int64_t planes) {
    return {.gain = in,
            .norm_bias = in,
            .normal = written(planes),
            .rstd = planes > 0 ? make(planes * batch) : nullptr};
  }
  // The same backward. Its sums are those of a row from number `first` on.
  RowNorm norm_back_of(const UnitStepsGradient& g, std::int64_t first, std::int64_t planes) {
    return {.gain = in,
            .normal = read(),
            .rstd = read(),
            .gain_sums = g.vector_sums + first * width,
            .norm_bias_sums = g.vector_sums + (first + planes) * width,
            .sums_stride = g.sums_stride};
  }
  void expect_channels(const std::string& kernel, double bytes_of_channel) {
    WithLargeUnits::expect_channels(kernel, bytes_of_channel, 1);
  }
};

double late_value_bytes(const Unit& unit) {
  return plain * (unit.recurrents + 1) + rounded;
}
double late_backward_bytes(const Unit& unit) {
  return plain * (unit.inputs + unit.recurrents + unit.states) +
         rounded * (unit.inputs + unit.recurrents);
}

TEST_F(LargeUnits, Forward) {
  each_unit(1, any, [&](const Unit& unit) {
    UnitSteps a = step_of(unit);
    a.late_value_rounded = written<Bfloat16>(unit.late);
    const cuda::UnitKernels& run = cuda::channel_kernels(unit);
    if (unit.late > 0) {
      run.late_value(on(), a, written(1));
      expect_channels("late_value_kernel", late_value_bytes(unit));
    }
    run.forward(on(), a);
    expect_channels("forward_kernel",
                    plain * (unit.recurrents + unit.late + unit.states) + rounded);
  });
}

TEST_F(LargeUnits, Backward) {
  each_unit(1, any, [&](const Unit& unit) {
    const UnitSteps a = step_back_of(unit);
    UnitStepsGradient g = gradient_of(unit, unit.vectors);
    if (unit.has_recurrent_product()) g.dx_rounded = written<Bfloat16>(unit.inputs);
    const cuda::UnitKernels& run = cuda::channel_kernels(unit);
    run.backward(on(), a, g);
    expect_channels("backward_kernel",
                    plain * (unit.inputs + unit.recurrents + unit.late + unit.states +
                             unit.vectors + unit.position_vectors) +
                        rounded * (unit.late > 0         ? unit.late
                                   : unit.recurrents > 0 ? unit.inputs + unit.recurrents
                                                         : 0));
    if (unit.late == 0) return;
    run.late_backward(on(), a, in, g);
    expect_channels("late_backward_kernel", late_backward_bytes(unit));
  });
}

// With layer normalization of the product that a kernel reads first.
TEST_F(LargeUnits, RowsForward) {
  each_unit(1, any, [&](const Unit& unit) {
    UnitSteps a = step_of(unit);
    a.late_value_rounded = written<Bfloat16>(unit.late);
    a.raw_x = written(unit.inputs);
    a.x_bias = in;
    a.u_norm = norm_of(unit.recurrents);
    a.late_norm = norm_of(unit.late);
    const cuda::UnitKernels& run = cuda::row_kernels(unit);
    const int completed = unit.inputs + 2 * unit.recurrents;
    if (unit.late > 0) {
      run.late_value(on(), a, written(1));
      expect_channels("late_value_kernel", plain * (completed + 1) + rounded);
    }
    run.forward(on(), a);
    expect_channels("forward_kernel",
                    plain * ((unit.late > 0 ? 2 * unit.late : completed) + unit.states) + rounded);
  });
}

TEST_F(LargeUnits, RowsBackward) {
  each_unit(1, any, [&](const Unit& unit) {
    UnitSteps a = step_back_of(unit);
    const int products = unit.recurrents + unit.late, norms = products > 0 ? products : unit.inputs;
    UnitStepsGradient g = gradient_of(unit, unit.vectors + 2 * norms);
    g.dx_rounded = written<Bfloat16>(unit.inputs);
    if (unit.recurrents > 0) a.u_norm = norm_back_of(g, unit.vectors, unit.recurrents);
    if (unit.late > 0) a.late_norm = norm_back_of(g, unit.vectors + 2 * unit.recurrents, unit.late);
    if (products == 0) a.x_norm = norm_back_of(g, unit.vectors, unit.inputs);
    const cuda::UnitKernels& run = cuda::row_kernels(unit);
    run.backward(on(), a, g);
    const int sums = unit.vectors + 2 * (unit.late > 0 ? unit.late : norms),
              copied = unit.late > 0 ? unit.late : unit.inputs + unit.recurrents;
    expect_channels("backward_kernel",
                    plain * (unit.inputs + products + unit.states + sums + unit.position_vectors) +
                        rounded * copied);
    if (unit.late == 0) return;
    run.late_backward(on(), a, in, g);
    expect_channels("late_backward_kernel",
                    late_backward_bytes(unit) + plain * 2 * unit.recurrents);
  });
}

TEST_F(LargeUnits, Chain) {
  each_unit(1, is_element_wise, [&](const Unit& unit) {
    UnitChain c{step_of(unit), step_of(unit)};
    const auto& run = cuda::chain_kernels(unit);
    run.forward(on(), c);
    const double states = 2 * plain * unit.states + rounded;
    expect_channels("forward_chain_kernel", states);
    c.keep = 0;
    run.forward(on(), c);
    expect_channels("forward_chain_kernel", states);
    for (UnitSteps* step : {&c.lower, &c.higher}) {
      step->raw_x = written(unit.inputs);
      step->x_bias = in;
    }
    run.forward(on(), c);
    expect_channels("forward_row_kernel", states + 2 * plain * unit.inputs);
  });
}

TEST_F(LargeUnits, ChainBackward) {
  each_unit(1, is_element_wise, [&](const Unit& unit) {
    const UnitChain c{step_back_of(unit), step_back_of(unit)};
    const UnitStepsGradient lower = gradient_of(unit, unit.vectors);
    const UnitStepsGradient higher = gradient_of(unit, unit.vectors, false);
    cuda::chain_kernels(unit).backward(on(), c, lower, higher);
    expect_channels(
        "backward_chain_kernel",
        plain * (unit.states + 2 * (unit.inputs + unit.vectors + unit.position_vectors)));
  });
}

TEST_F(LargeUnits, Pair) {
  each_unit(1, is_element_wise, [&](const Unit& unit) {
    UnitSteps higher = step_of(unit);
    higher.raw_x = written(unit.inputs);
    higher.x_norm = norm_of(unit.inputs);
    cuda::pair_kernels(unit).forward(on(), higher, step_of(unit));
    expect_channels("forward_pair_kernel",
                    2 * (plain * unit.states + rounded) + plain * 2 * unit.inputs);
  });
}

TEST_F(LargeUnits, PairBackward) {
  each_unit(1, is_element_wise, [&](const Unit& unit) {
    UnitSteps higher = step_back_of(unit);
    const UnitStepsGradient lower = gradient_of(unit, unit.vectors);
    UnitStepsGradient g = gradient_of(unit, unit.vectors + 2 * unit.inputs, false);
    g.dx_rounded = written<Bfloat16>(unit.inputs);
    higher.x_norm = norm_back_of(g, unit.vectors, unit.inputs);
    cuda::pair_kernels(unit).backward(on(), higher, step_back_of(unit), g, lower);
    expect_channels(
        "backward_pair_kernel",
        plain * (unit.states + 2 * (unit.inputs + unit.vectors + unit.position_vectors) +
                 2 * unit.inputs) +
            rounded * unit.inputs);
  });
}

}  // namespace
}  // namespace nmt::test
