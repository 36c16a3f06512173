#include "autograd/recurrent/cell.h"
#include "kernels/recurrent/convolution.h"

#include <optional>

namespace nmt::ops {

std::vector<Var> recurrence(Tape& tape, const Cell& cell, const Projections& projections,
                            const std::vector<Var>& given, const Tensor& mask, bool reverse,
                            std::int64_t position) {
  const Context& context = tape.context();
  const bool backward = tape.recording(), keep = backward || tape.probe();
  const Var& x = projections.value;
  kernels::Recurrence args;
  describe_loop(cell, x, mask, reverse, position, keep, args);
  args.x_norm = pending_norm(projections);
  const std::int64_t steps = args.steps, batch = args.batch;
  const CellView view = view_cell(context, cell, backward);
  const CellBuffers buffers(context, cell, keep ? steps * batch : batch, backward);
  const std::vector<Var> initial = complete_states(tape, cell, given);
  const std::vector<Tensor> start = initial_states(context, cell, initial, batch);

  args.cell = view.cell;
  args.record = buffers.record();
  const std::vector<Var> states = new_states(tape, cell, start, args);
  round_states(tape, cell, *states[0], args);
  {
    const Region region(context.profile, "recurrences",
                        cell_work(cell, steps * batch, x->value.dtype(), false));
    dispatch(context, [&](const auto& backend) { kernels::recurrence_forward(backend, args); });
  }
  if (tape.probe())
    probe_gates(tape, cell, x->value, buffers, states_before(context, start, states, reverse),
                reverse);

  if (!backward) return states;
  tape.record([&tape, &context, cell, view, buffers, start, initial, mask, x, states, args] {
    if (!states[0]->gradient) return;
    const std::int64_t rows = args.steps * args.batch;
    const CellGradients gradients(context, cell, rows, x->value);
    kernels::RecurrenceGradient g;
    g.dh = states[0]->gradient.f32();
    g.cell = gradients.view(cell);
    const std::vector<Tensor> dinitial = initial_gradients(context, cell, args.batch, g.dinitial);
    std::optional<Region> back(std::in_place, context.profile, "recurrences, back",
                               cell_work(cell, rows, x->value.dtype(), true));
    dispatch(context, [&](const auto& backend) {
      const Tensor scratch = context.empty({kernels::recurrence_scratch(backend, args)});
      g.scratch = scratch.f32();
      kernels::recurrence_backward(backend, args, g);
    });
    back.reset();
    add_weight_gradients(tape, cell, buffers, gradients,
                         previous_rows(start[0], *states[0], args.reverse), rows);
    tape.accumulate(*x, gradients.of_x().reshape(x->value.shape()));
    for (std::size_t p = 0; p < initial.size(); ++p) tape.accumulate(*initial[p], dinitial[p]);
  });
  return states;
}

Convolved convolution(Tape& tape, const Var& x, Parameter& weight, Parameter& bias,
                      const Var& before, const Tensor& mask, bool reverse) {
  const Context& context = tape.context();
  const Shape& shape = x->value.shape();
  kernels::Convolution args;
  args.taps = weight.shape[0];
  args.width = weight.shape[1];
  NMT_CHECK(shape.rank() == 3 && shape[2] == args.width, "{} {} cannot convolve {}", weight.name,
            weight.shape.text(), shape.text());
  args.steps = shape[0];
  args.batch = shape[1];
  args.reverse = reverse;
  args.x = x->value.f32();
  args.mask = mask ? mask.f32() : nullptr;
  args.weight = weight.value.f32();
  args.bias = bias.value.f32();
  const std::int64_t kept = (args.taps - 1) * args.width;
  if (before) {
    NMT_CHECK(!reverse && before->value.elements() == args.batch * kept,
              "{}: {} before {} rows of {}", weight.name, before->value.shape().text(), args.batch,
              kept);
    args.before = before->value.f32();
  }
  const double rows = static_cast<double>(args.steps * args.batch),
               width = static_cast<double>(args.width);
  const PartWork work{2 * rows * width * static_cast<double>(args.taps), 8 * rows * width};
  constexpr const char* name = "convolutions";
  const Var y = tape.result(context.empty(shape));
  Tensor last = reverse ? Tensor() : context.empty({1, args.batch, kept});
  {
    const Region region(context.profile, name, work);
    dispatch(context, [&](const auto& backend) {
      kernels::convolution_forward(backend, args, y->value.f32());
      if (last) kernels::convolution_last(backend, args, last.f32());
    });
  }
  const Convolved result{y, last ? tape.constant(std::move(last)) : nullptr};
  if (!tape.recording()) return result;
  tape.record([&tape, x, y, before, mask, &weight, &bias, args, work] {
    if (!y->gradient) return;
    const Region back(tape.context().profile, "convolutions, back", add_work(work, work));
    float* const dx = x->wants_gradient ? tape.gradient(*x) : nullptr;
    dispatch(tape.context(), [&](const auto& backend) {
      kernels::convolution_backward(backend, args, y->gradient.f32(), dx, weight.gradient.f32(),
                                    bias.gradient.f32());
    });
  });
  return result;
}

}  // namespace nmt::ops
