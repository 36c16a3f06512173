#include "autograd/probe.h"

#include "autograd/recurrent/cell.h"
#include "tensor/copy.h"

#include <algorithm>

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

namespace {

// The derivative of the last state vector with respect to its previous value, by the unit's own
// backward pass. [rows,H]
void state_slope(const kernels::Unit& unit, const kernels::UnitStep& step, float* slope) {
  const auto count = static_cast<std::size_t>(step.rows * step.width);
  const auto zeros = [](std::size_t n) { return std::vector<float>(n, 0.0f); };
  const auto planes = [](int n) { return static_cast<std::size_t>(n); };
  std::vector<float> dx = zeros(count * planes(unit.inputs)),
                     dvectors = zeros(count * planes(unit.vectors)),
                     dposition = zeros(count * planes(unit.position_vectors));
  std::vector<std::vector<float>> dnext, dprevious;
  kernels::UnitStepGradient gradient;
  for (int p = 0; p < unit.states; ++p) {
    dnext.emplace_back(count, p == unit.states - 1 ? 1.0f : 0.0f);
    dprevious.emplace_back(count);
    gradient.dnext[p] = dnext.back().data();
    gradient.dprevious[p] = dprevious.back().data();
  }
  gradient.dx = dx.data();
  gradient.dvectors = dvectors.data();
  gradient.dposition = dposition.data();
  unit.backward(step, gradient);
  std::copy(dprevious.back().begin(), dprevious.back().end(), slope);
}

}  // namespace

// The gates are computed on the host: probes inspect one sentence at a time.
void probe_gates(const Tape& tape, const Cell& cell, const Tensor& x, const CellBuffers& buffers,
                 const std::vector<Tensor>& previous, bool reverse, int lower) {
  const Context& context = tape.context();
  Probe& probe = *tape.probe();
  GateRecord record{cell.name, cell.unit, cell.width, cell.width, reverse, lower, {}, {}, {}};
  if (cell.unit->gates) {
    const Shape shape = x.shape().with_last(cell.width);
    record.input = Tensor(*probe.host, shape);
    record.forget = Tensor(*probe.host, shape);
    if (!cell.unit->has_recurrent_product()) record.slope = Tensor(*probe.host, shape);
    const Tensor inputs = host_copy(context, probe, x),
                 products = host_copy(context, probe, buffers.u),
                 vectors = host_copy(context, probe, cell.vectors ? cell.vectors->value : Tensor());
    const Tensor positions =
        host_copy(context, probe, cell.positions ? cell.positions->value : Tensor());
    std::vector<Tensor> states;
    for (const Tensor& state : previous) states.push_back(host_copy(context, probe, state));
    const std::int64_t steps = x.shape()[0], rows = x.rows() / steps, h = cell.width;
    const auto part = [rows](const Tensor& tensor, std::int64_t t, std::int64_t width) {
      return tensor ? tensor.f32() + t * rows * width : nullptr;
    };
    for (std::int64_t t = 0; t < steps; ++t) {
      kernels::UnitStep step;
      step.rows = rows;
      step.width = h;
      step.x = part(inputs, t, cell.unit->inputs * h);
      step.u = part(products, t, cell.unit->recurrents * h);
      step.vectors = pointer(vectors);
      if (positions)
        step.position =
            positions.f32() + std::min(t, positions.shape()[0] - 1) * positions.shape()[1];
      for (std::size_t p = 0; p < states.size(); ++p) step.previous[p] = part(states[p], t, h);
      cell.unit->gates(step, part(record.input, t, h), part(record.forget, t, h));
      if (record.slope) state_slope(*cell.unit, step, part(record.slope, t, h));
    }
  }
  probe.units.push_back(std::move(record));
}

}  // namespace nmt::ops
