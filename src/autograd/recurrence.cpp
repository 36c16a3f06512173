#include "autograd/cell.h"

#include <optional>

namespace nmt::ops {

std::vector<Var> recurrence(Tape& tape, const Cell& cell, const Var& x,
                            const std::vector<Var>& given, const Tensor& mask, bool reverse,
                            std::int64_t position) {
  const Context& context = tape.context();
  const bool backward = tape.recording(), keep = backward || tape.probe();
  kernels::Recurrence args;
  describe_loop(cell, x, mask, reverse, position, keep, args);
  const std::int64_t steps = args.steps, batch = args.batch;
  const CellView view = view_cell(context, cell, backward);
  const CellBuffers buffers(context, cell, keep ? steps * batch : batch, backward);
  const std::vector<Var> initial = complete_states(tape, cell, given);
  const std::vector<Tensor> start = initial_states(context, cell, initial, batch);

  args.cell = view.cell;
  args.record = buffers.record();
  const std::vector<Var> states = new_states(tape, cell, start, args);
  {
    const Region region(context.profile, "recurrences", cell_work(cell, steps * batch, false));
    dispatch(context, [&](const auto& backend) { kernels::recurrence_forward(backend, args); });
  }
  if (tape.probe())
    probe_gates(tape, cell, x->value, buffers, states_before(context, start, states, reverse),
                reverse);

  if (!backward) return states;
  tape.record([&tape, cell, view, buffers, start, initial, mask, x, states, args] {
    if (!states[0]->gradient) return;
    const Context& at = tape.context();
    const std::int64_t rows = args.steps * args.batch;
    const CellGradients gradients(at, cell, rows);
    kernels::RecurrenceGradient g;
    g.dh = states[0]->gradient.f32();
    g.cell = gradients.view(cell);
    const std::vector<Tensor> dinitial = initial_gradients(at, cell, args.batch, g.dinitial);
    std::optional<Region> back(std::in_place, at.profile, "recurrences, back",
                               cell_work(cell, rows, true));
    dispatch(at, [&](const auto& backend) {
      const Tensor scratch = at.empty({kernels::recurrence_scratch(backend, args)});
      g.scratch = scratch.f32();
      kernels::recurrence_backward(backend, args, g);
    });
    back.reset();
    add_weight_gradients(at, cell, buffers, gradients,
                         previous_rows(start[0], states[0]->value, args.reverse), rows);
    tape.accumulate(*x, gradients.dx.reshape(x->value.shape()));
    for (std::size_t p = 0; p < initial.size(); ++p) tape.accumulate(*initial[p], dinitial[p]);
  });
  return states;
}

}  // namespace nmt::ops
