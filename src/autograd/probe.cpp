#include "nmt/autograd/probe.h"

#include <algorithm>

#include "cell.h"

namespace nmt::ops {

std::vector<Tensor> states_before(const Context& context, const std::vector<Tensor>& start, const std::vector<Var>& states, bool reverse) {
  std::vector<Tensor> before;
  for (std::size_t p = 0; p < states.size(); ++p) {
    const Tensor& after = states[p]->value;
    const std::int64_t one = start[p].elements(), rest = after.elements() - one;
    float* to = before.emplace_back(context.empty(after.shape())).f32();
    std::copy_n(start[p].f32(), one, reverse ? to + rest : to);
    std::copy_n(reverse ? after.f32() + one : after.f32(), rest, reverse ? to : to + one);
  }
  return before;
}

void probe_gates(const Tape& tape, const Cell& cell, const Tensor& x, const CellBuffers& buffers, const std::vector<Tensor>& previous,
                 bool reverse, int lower) {
  const Context& context = tape.context();
  NMT_CHECK(context.device.kind == DeviceKind::cpu, "gates are probed on the CPU alone");
  GateRecord record{cell.name, cell.unit, cell.width, reverse, lower, {}, {}};
  if (cell.unit->gates) {
    const Shape shape = x.shape().with_last(cell.width);
    record.input = context.empty(shape);
    record.forget = context.empty(shape);
    kernels::UnitStep step;
    step.rows = x.rows();
    step.width = cell.width;
    step.x = x.f32();
    step.u = pointer(buffers.u);
    step.vectors = value_of(cell.vectors);
    for (std::size_t p = 0; p < previous.size(); ++p) step.previous[p] = previous[p].f32();
    cell.unit->gates(step, record.input.f32(), record.forget.f32());
  }
  tape.probe()->units.push_back(std::move(record));
}

}  // namespace nmt::ops
