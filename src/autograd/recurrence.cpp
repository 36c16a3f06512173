#include "autograd/cell.h"

#include <optional>

namespace nmt::ops {

std::vector<Var> recurrence(Tape& tape, const Cell& cell, const Var& x,
                            const std::vector<Var>& given, const Tensor& mask, bool reverse,
                            std::int64_t position) {
  const Context& context = tape.context();
  const Shape& shape = x->value.shape();
  const kernels::Unit& unit = *cell.unit;
  const std::int64_t h = cell.width;
  NMT_CHECK(shape.rank() == 3 && shape[2] == unit.inputs * h,
            "unit {} of width {} reads [T,B,{}], not {}", unit.name, h, unit.inputs * h,
            shape.text());
  const std::int64_t steps = shape[0], batch = shape[1];
  const bool backward = tape.recording(), keep = backward || tape.probe();
  const CellView view = view_cell(context, cell, backward);
  const CellBuffers buffers(context, cell, keep ? steps * batch : batch, backward);
  const std::vector<Var> initial = complete_states(tape, cell, given);
  const std::vector<Tensor> start = initial_states(context, cell, initial, batch);

  kernels::Recurrence args;
  args.cell = view.cell;
  args.steps = steps;
  args.batch = batch;
  args.reverse = reverse;
  args.position = position;
  args.keep = keep;
  args.x = x->value.f32();
  args.mask = pointer(mask);
  args.record = buffers.record();
  std::vector<Var> states;
  for (int p = 0; p < unit.states; ++p) {
    states.push_back(tape.result(context.empty({steps, batch, h})));
    args.initial[p] = start[p].f32();
    args.states[p] = states[p]->value.f32();
  }
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
