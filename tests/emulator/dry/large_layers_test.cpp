// Recurrent layers whose arrays of all steps have more than 2^31 elements: kernels that take all
// steps, and loops that launch kernels step by step.

#include "cuda/kernels/recurrent/cell.h"
#include "dry/large_units.h"
#include "kernels/recurrent/conditional.h"
#include "kernels/recurrent/recurrence.h"
#include "kernels/recurrent/transition.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace nmt::test {
namespace {

using kernels::Bfloat16;
using kernels::Cell;
using kernels::CellGradient;
using kernels::CellRecord;
using kernels::Unit;

// Of the attention of a conditional layer: space and width, and positions.
constexpr std::int64_t attended = 32, sources = 2;
constexpr double attention_bytes = 4.0 * (attended + sources);  // for a row

class LargeLayers : public WithLargeUnits {
 protected:
  float* written_once(std::int64_t planes) {
    return planes > 0 ? make(planes * batch * width) : nullptr;
  }

  Cell cell_of(const Unit& unit, bool normalizes) {
    Cell cell;
    cell.unit = &unit;
    cell.width = width;
    cell.recurrent = cell.late = in;
    cell.recurrent_transposed = cell.late_transposed = in;
    if (unit.has_recurrent_product() && !normalizes) cell.bias = in;
    if (normalizes) cell.gain = cell.norm_bias = in;
    cell.vectors = cell.positions = in;
    cell.position_rows = 1;
    return cell;
  }
  CellRecord record_of(const Unit& unit, bool normalizes) {
    CellRecord record;
    record.u = written(unit.recurrents);
    record.late = written(unit.late);
    record.late_value = written(unit.late);
    if (!normalizes) return record;
    record.u_normal = written(unit.recurrents);
    record.late_normal = written(unit.late);
    record.u_rstd = record.late_rstd = make(4 * steps * batch);
    return record;
  }
  // What a forward pass has recorded, read by the backward pass.
  CellRecord recorded() const {
    CellRecord record;
    record.u = record.late = record.late_value = read();
    record.u_normal = record.late_normal = record.u_rstd = record.late_rstd = read();
    return record;
  }
  // Without what sums over rows write: vectors, gains, positions.
  CellGradient gradient_of(const Unit& unit) {
    CellGradient g;
    g.dx = written(unit.inputs);
    g.du = written(unit.recurrents);
    g.dlate = written(unit.late);
    return g;
  }
  // Of the states of a loop over all steps: those written, or read in the backward pass.
  template <class Loop>
  void set_states(const Unit& unit, bool backward, Loop& a) {
    for (int p = 0; p < unit.states; ++p) {
      a.initial[p] = in;
      a.states[p] = backward ? read() : written(1);
    }
  }
  template <class Loop>
  void set_sizes(Loop& a) const {
    a.steps = steps;
    a.batch = batch;
    a.x = in;
  }

  kernels::Recurrence recurrence(const Unit& unit, bool normalizes, bool backward) {
    kernels::Recurrence a;
    a.cell = cell_of(unit, normalizes);
    set_sizes(a);
    set_states(unit, backward, a);
    if (!backward) a.states_rounded = written<Bfloat16>(1);
    a.record = backward ? recorded() : record_of(unit, normalizes);
    return a;
  }
  void recurrence_backward(const kernels::Recurrence& a) {
    kernels::RecurrenceGradient g;
    g.dh = in;
    for (int p = 0; p < a.cell.unit->states; ++p) g.dinitial[p] = written_once(1);
    g.cell = gradient_of(*a.cell.unit);
    g.scratch = make(kernels::recurrence_scratch(on(), a) + 1);
    kernels::recurrence_backward(on(), a, g);
  }

  kernels::Transition transition(const Unit& unit, bool backward) {
    kernels::Transition a;
    a.lower = a.higher = cell_of(unit, false);
    set_sizes(a);
    set_states(unit, backward, a);
    a.higher_x = in;
    for (int p = 0; p < unit.states; ++p) a.middle[p] = backward ? read() : written(1);
    a.lower_record = a.higher_record = backward ? recorded() : record_of(unit, false);
    return a;
  }

  // An element-wise unit normalizes the projections of the contexts, a matrix unit adds a bias.
  kernels::Conditional conditional(const Unit& unit, bool backward) {
    kernels::Conditional a;
    a.lower = a.higher = cell_of(unit, false);
    set_sizes(a);
    set_states(unit, backward, a);
    a.attention.kind = kernels::AttentionKind::dot;
    a.attention.steps = sources;
    a.attention.sentences = batch;
    a.attention.space = a.attention.width = attended;
    a.attention.keys = a.attention.memory = a.attention.v = in;
    a.attention.lengths = reinterpret_cast<const std::int32_t*>(in);
    a.query = a.context = in;
    a.query_transposed = a.context_transposed = in;
    (unit.has_recurrent_product() ? a.context_bias : a.context_gain) = in;
    a.context_norm_bias = in;
    for (int p = 0; p < unit.states; ++p) a.middle[p] = backward ? read() : written(1);
    a.contexts = backward ? read() : make(steps * batch * attended);
    a.queries = backward ? read() : make(steps * batch * attended);
    a.weights = backward ? read() : make(steps * batch * sources);
    a.xc = backward ? read() : written(unit.inputs);
    a.xc_rstd = backward ? read() : make(4 * steps * batch);
    if (!unit.has_recurrent_product()) a.xc_normal = backward ? read() : written(unit.inputs);
    a.lower_record = a.higher_record = backward ? recorded() : record_of(unit, false);
    return a;
  }

  // Numbers of a channel that a step of a matrix unit writes, without normalization.
  static int backward_numbers(const Unit& unit) {
    return unit.inputs + unit.recurrents + unit.late + unit.states + unit.vectors +
           unit.position_vectors;
  }
};

TEST_F(LargeLayers, ElementWise) {
  each_unit(4, is_element_wise, [&](const Unit& unit) {
    kernels::recurrence_forward(on(), recurrence(unit, false, false));
    expect_channels("forward_kernel", 4 * unit.states + 2, steps);
  });
}

TEST_F(LargeLayers, ElementWiseBackward) {
  each_unit(4, is_element_wise, [&](const Unit& unit) {
    recurrence_backward(recurrence(unit, false, true));
    const double once = unit.states + unit.vectors;  // numbers of a channel, not of a step
    expect_channels("backward_kernel", 4 * (unit.inputs + unit.position_vectors + once / 4), steps);
  });
}

// The units with a linear state.
bool is_linear(const Unit& unit) {
  constexpr std::string_view names[] = {"mingru", "minlstm", "rglru", "hgrn", "ssru"};
  const std::string_view name = unit.name, variant = unit.variant;
  return std::ranges::find(names, name) != std::end(names) ||
         (name == "lstm" && variant == "input=x");
}
// So many that the few sentences have chunks.
constexpr std::int64_t long_steps = 2048;

TEST_F(LargeLayers, Chunks) {
  each_unit(long_steps, is_linear, [&](const Unit& unit) {
    kernels::Recurrence a = recurrence(unit, false, false);
    kernels::recurrence_forward(on(), a);
    expect_channels("chunks_kernel", 4 * unit.states + 2, steps);
    if (unit.states == 1) return;
    a.mask = in;  // of all steps
    kernels::recurrence_forward(on(), a);
    double bytes = 0;
    for (const auto& [name, work] : dry->work())
      if (name.starts_with("chunks_kernel") || name.starts_with("passed_states_kernel"))
        bytes += work.written;
    EXPECT_GT(work("passed_states_kernel").written, 0);
    const double all = (4.0 * unit.states + 2) * static_cast<double>(steps * batch * width);
    EXPECT_NEAR(bytes, all, 0.03 * all);
  });
}

TEST_F(LargeLayers, ChunksBackward) {
  each_unit(long_steps, is_linear, [&](const Unit& unit) {
    recurrence_backward(recurrence(unit, false, true));
    expect_channels("chunks_backward_kernel", 4 * unit.inputs, steps);
  });
}

// The positions of a sentence are more than a dimension y of a grid.
TEST_F(LargeLayers, Positions) {
  const auto unit = std::ranges::find_if(
      kernels::units(), [](const Unit& each) { return each.position_vectors > 0; });
  steps = 80'000;
  batch = elements / (steps * width) + 1;
  in = make(steps * batch * width);
  Cell cell = cell_of(*unit, false);
  cell.position_rows = steps;
  CellGradient g;
  g.dpositions = make(steps * width);
  cuda::finish_cell(on(), cell, steps, batch, 0, {.sums = read(), .dpositions = read()}, g);
  const double read_bytes = work("position_kernel").read,
               all = 4.0 * static_cast<double>(steps * batch * width);
  EXPECT_NEAR(read_bytes, all, 0.03 * all);
}

// A product and a kernel for each step, with a bias or with layer normalization.
TEST_F(LargeLayers, Matrix) {
  for (const bool normalizes : {false, true})
    each_unit(4, is_matrix, [&](const Unit& unit) {
      kernels::recurrence_forward(on(), recurrence(unit, normalizes, false));
      const int completed = normalizes ? 2 : 1;
      expect_channels(
          "forward_kernel",
          4 * (completed * (unit.late > 0 ? unit.late : unit.recurrents) + unit.states) + 2, steps);
    });
}

TEST_F(LargeLayers, MatrixBackward) {
  for (const bool normalizes : {false, true})
    each_unit(4, is_matrix, [&](const Unit& unit) {
      recurrence_backward(recurrence(unit, normalizes, true));
      const int sums = normalizes ? 2 * (unit.late > 0 ? unit.late : unit.recurrents) : 0;
      expect_channels("backward_kernel", 4 * (backward_numbers(unit) + sums), steps);
    });
}

TEST_F(LargeLayers, Transition) {
  each_unit(4, any, [&](const Unit& unit) {
    kernels::transition_forward(on(), transition(unit, false));
    if (unit.has_recurrent_product())
      expect_channels("forward_kernel",
                      4 * 2 * ((unit.late > 0 ? unit.late : unit.recurrents) + unit.states), steps);
    else
      expect_channels("forward_chain_kernel", 4 * 2 * unit.states, steps);
  });
}

TEST_F(LargeLayers, TransitionBackward) {
  each_unit(4, any, [&](const Unit& unit) {
    const kernels::Transition a = transition(unit, true);
    kernels::TransitionGradient g;
    g.dh = in;
    for (int p = 0; p < unit.states; ++p) g.dinitial[p] = written_once(1);
    g.lower = gradient_of(unit);
    g.higher = gradient_of(unit);
    g.scratch = make(kernels::transition_scratch(on(), a) + 1);
    kernels::transition_backward(on(), a, g);
    if (unit.has_recurrent_product())
      expect_channels("backward_kernel", 4 * 2 * backward_numbers(unit), steps);
    else
      expect_channels("backward_chain_kernel",
                      4 * (2 * (unit.inputs + unit.position_vectors) +
                           (unit.states + 2.0 * unit.vectors) / static_cast<double>(steps)),
                      steps);
  });
}

TEST_F(LargeLayers, Conditional) {
  each_unit(4, any, [&](const Unit& unit) {
    kernels::conditional_forward(on(), conditional(unit, false));
    if (unit.has_recurrent_product())
      expect_channels("forward_kernel",
                      4 * (2 * unit.states +
                           (unit.late > 0 ? 2 * unit.late : 2 * unit.recurrents + unit.inputs)) +
                          attention_bytes / width,
                      steps);
    else
      expect_channels("forward_pair_kernel", 4 * 2 * (unit.states + unit.inputs), steps - 1);
  });
}

TEST_F(LargeLayers, ConditionalBackward) {
  each_unit(4, any, [&](const Unit& unit) {
    const kernels::Conditional a = conditional(unit, true);
    kernels::ConditionalGradient g;
    g.dh = g.dcontexts = in;
    for (int p = 0; p < unit.states; ++p) g.dinitial[p] = written_once(1);
    g.lower = gradient_of(unit);
    g.higher = gradient_of(unit);
    g.dqueries = make(steps * batch * attended);
    g.dkeys = make(sources * batch * attended);
    g.dmemory = make(sources * batch * attended);
    g.dv = make(attended);
    g.scratch = make(kernels::conditional_scratch(on(), a) + 1);
    kernels::conditional_backward(on(), a, g);
    if (unit.has_recurrent_product())
      expect_channels("backward_kernel", 4 * 2 * backward_numbers(unit), steps);
    else
      expect_channels("backward_pair_kernel",
                      4 * (unit.states + 2 * (unit.inputs + unit.vectors + unit.position_vectors) +
                           2 * unit.inputs),
                      steps - 1);
  });
}

}  // namespace
}  // namespace nmt::test
