#include "kernels/recurrent/transition.h"

#include "autograd/recurrent/cell.h"

#include <optional>

namespace nmt::ops {

std::vector<Var> transition(Tape& tape, const Cell& lower, const Cell& higher,
                            const Projections& of_x, const Projections& of_higher_x,
                            const std::vector<Var>& given, const Tensor& mask, bool reverse,
                            std::int64_t position) {
  const Context& context = tape.context();
  const Var &x = of_x.value, &higher_x = of_higher_x.value;
  const bool recording = tape.recording(), keep = recording || tape.probe();
  kernels::Transition args;
  describe_loop(lower, x, mask, reverse, position, keep, args);
  NMT_CHECK(higher_x->value.shape() == x->value.shape(),
            "the higher unit reads {}, the lower one {}", higher_x->value.shape().text(),
            x->value.shape().text());
  const std::int64_t steps = args.steps, batch = args.batch;
  const std::int64_t kept = keep ? steps * batch : batch;
  const CellView lower_view = view_cell(context, lower, recording),
                 higher_view = view_cell(context, higher, recording);
  const CellBuffers lower_buffers(context, lower, kept, recording),
      higher_buffers(context, higher, kept, recording);
  const std::vector<Var> initial = complete_states(tape, lower, given);
  const std::vector<Tensor> start = initial_states(context, lower, initial, batch);

  args.lower = lower_view.cell;
  args.higher = higher_view.cell;
  view_projections(higher_x->value, args.higher_x, args.higher_x_rounded);
  args.x_norm = pending_norm(of_x);
  args.higher_x_norm = pending_norm(of_higher_x);
  args.lower_record = lower_buffers.record();
  args.higher_record = higher_buffers.record();
  const std::vector<Var> states = new_states(tape, lower, start, args);
  round_states(tape, lower, *states[0], args);
  std::vector<Tensor> middle;
  for (int p = 0; p < lower.unit->states; ++p) {
    middle.push_back(context.empty({kept, lower.width}));
    args.middle[p] = middle[p].f32();
  }
  Tensor middle_rounded;
  if (lower.unit->has_recurrent_product())
    middle_rounded = room_for_products(context, lower, kept, lower.width);
  args.middle_rounded = copy_of(middle_rounded);
  {
    const Region region(context.profile, "recurrences of two units",
                        add_work(cell_work(lower, steps * batch, x->value.dtype(), false),
                                 cell_work(higher, steps * batch, higher_x->value.dtype(), false)));
    dispatch(context, [&](const auto& backend) { kernels::transition_forward(backend, args); });
  }
  if (const Probe* probe = tape.probe()) {
    probe_gates(tape, lower, x->value, lower_buffers,
                states_before(context, start, states, reverse), reverse);
    probe_gates(tape, higher, higher_x->value, higher_buffers, middle, reverse,
                static_cast<int>(probe->units.size()) - 1);
  }

  if (!recording) return states;
  tape.record([&tape, &context, lower, higher, lower_view, higher_view, lower_buffers,
               higher_buffers, start, middle, middle_rounded, initial, mask, x, higher_x, states,
               args] {
    if (!states[0]->gradient) return;
    const std::int64_t rows = args.steps * args.batch;
    const CellGradients lower_gradients(context, lower, rows, x->value),
        higher_gradients(context, higher, rows, higher_x->value);
    kernels::TransitionGradient g;
    g.dh = states[0]->gradient.f32();
    g.lower = lower_gradients.view(lower);
    g.higher = higher_gradients.view(higher);
    const std::vector<Tensor> dinitial = initial_gradients(context, lower, args.batch, g.dinitial);
    std::optional<Region> back(std::in_place, context.profile, "recurrences of two units, back",
                               add_work(cell_work(lower, rows, x->value.dtype(), true),
                                        cell_work(higher, rows, higher_x->value.dtype(), true)));
    dispatch(context, [&](const auto& backend) {
      const Tensor scratch = context.empty({kernels::transition_scratch(backend, args)});
      g.scratch = scratch.f32();
      kernels::transition_backward(backend, args, g);
    });
    back.reset();
    add_weight_gradients(tape, lower, lower_buffers, lower_gradients,
                         previous_rows(start[0], *states[0], args.reverse), rows);
    add_weight_gradients(tape, higher, higher_buffers, higher_gradients,
                         {{{middle[0].f32(), copy_of(middle_rounded)}, 0, rows}}, rows);
    tape.accumulate(*x, lower_gradients.of_x().reshape(x->value.shape()));
    tape.accumulate(*higher_x, higher_gradients.of_x().reshape(higher_x->value.shape()));
    for (std::size_t p = 0; p < initial.size(); ++p) tape.accumulate(*initial[p], dinitial[p]);
  });
  return states;
}

}  // namespace nmt::ops
