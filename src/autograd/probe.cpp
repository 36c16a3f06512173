#include "autograd/probe.h"

#include "autograd/cell.h"
#include "tensor/copy.h"

namespace nmt::ops {

std::vector<Tensor> states_before(const Context& context, const std::vector<Tensor>& start,
                                  const std::vector<Var>& states, bool reverse) {
  std::vector<Tensor> before;
  for (std::size_t p = 0; p < states.size(); ++p) {
    const Tensor& after = states[p]->value;
    const std::int64_t one = start[p].elements(), rest = after.elements() - one;
    float* to = before.emplace_back(context.empty(after.shape())).f32();
    copy_floats(context, one, start[p].f32(), reverse ? to + rest : to);
    copy_floats(context, rest, reverse ? after.f32() + one : after.f32(), reverse ? to : to + one);
  }
  return before;
}

Tensor host_copy(const Context& context, Probe& probe, const Tensor& tensor) {
  if (!tensor) return {};
  Tensor copy(*probe.host, tensor.shape());
  download(context, tensor, copy);
  return copy;
}

// The gates are computed on the host: probes inspect one sentence at a time.
void probe_gates(const Tape& tape, const Cell& cell, const Tensor& x, const CellBuffers& buffers,
                 const std::vector<Tensor>& previous, bool reverse, int lower) {
  const Context& context = tape.context();
  Probe& probe = *tape.probe();
  GateRecord record{cell.name, cell.unit, cell.width, reverse, lower, {}, {}};
  if (cell.unit->gates) {
    const Shape shape = x.shape().with_last(cell.width);
    record.input = Tensor(*probe.host, shape);
    record.forget = Tensor(*probe.host, shape);
    const Tensor inputs = host_copy(context, probe, x),
                 products = host_copy(context, probe, buffers.u),
                 vectors = host_copy(context, probe, cell.vectors ? cell.vectors->value : Tensor());
    std::vector<Tensor> states;
    kernels::UnitStep step;
    step.rows = x.rows();
    step.width = cell.width;
    step.x = inputs.f32();
    step.u = pointer(products);
    step.vectors = pointer(vectors);
    for (std::size_t p = 0; p < previous.size(); ++p) {
      states.push_back(host_copy(context, probe, previous[p]));
      step.previous[p] = states.back().f32();
    }
    cell.unit->gates(step, record.input.f32(), record.forget.f32());
  }
  probe.units.push_back(std::move(record));
}

}  // namespace nmt::ops
