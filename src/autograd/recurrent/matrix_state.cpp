#include "kernels/recurrent/matrix_state.h"

#include "autograd/recurrent/cell.h"
#include "kernels/pointwise.h"

#include <memory>
#include <optional>

namespace nmt::ops {
namespace {

// FLOPs and bytes of the scan over `rows` rows: 5 operations per number of the state in the forward
// pass; x, shared and h moved once.
PartWork scan_work(const kernels::MatrixRecurrence& a, bool back) {
  const double rows = static_cast<double>(a.steps * a.batch),
               numbers = rows * static_cast<double>(a.width * a.state_width),
               floats =
                   rows * static_cast<double>((a.unit->inputs + 1) * a.width + a.shared_width());
  return {(back ? 16.0 : 5.0) * numbers, (back ? 8.0 : 4.0) * floats};
}

Tensor zeros(const Context& context, const Shape& shape) {
  Tensor tensor = context.empty(shape);
  dispatch(context, [&](const auto& backend) {
    kernels::fill(backend, tensor.f32(), tensor.elements(), 0.0f);
  });
  return tensor;
}

// The gates are computed on the host, as those of other units (probe_gates).
void record_gates(const Context& context, Probe& probe, const Cell& cell,
                  kernels::MatrixRecurrence a, const Var& x, const Var& shared,
                  const Tensor& memory_before, const Tensor& mask) {
  const kernels::MatrixKernels& kernels = *cell.unit->matrix_state->kernels;
  GateRecord record{cell.name, cell.unit, cell.width, kernels.gate_width(a), a.reverse, -1,
                    {},        {},        {}};
  if (kernels.gates) {
    const auto on_host = [&](const Tensor& tensor) { return host_copy(context, probe, tensor); };
    const auto parameter = [&](const Parameter* p) { return on_host(p ? p->value : Tensor()); };
    const Tensor inputs = on_host(x->value), heads = on_host(shared->value),
                 vectors = parameter(cell.vectors), rows = parameter(cell.rows),
                 memory = on_host(memory_before), live = on_host(mask);
    a.x = inputs.f32();
    a.shared = heads.f32();
    a.vectors = pointer(vectors);
    a.rows = pointer(rows);
    a.memory_before = memory.f32();
    a.mask = pointer(live);
    const Shape shape = x->value.shape().with_last(record.gates);
    record.input = Tensor(*probe.host, shape);
    record.forget = Tensor(*probe.host, shape);
    for (std::int64_t b = 0; b < a.batch; ++b)
      for (std::int64_t head = 0; head < a.heads; ++head)
        kernels.gates(a, {b, head}, record.input.f32(), record.forget.f32());
  }
  probe.units.push_back(std::move(record));
}

}  // namespace

std::vector<Var> matrix_recurrence(Tape& tape, const Cell& cell, const Var& x, const Var& shared,
                                   const std::vector<Var>& initial, const Tensor& mask,
                                   bool reverse) {
  const Context& context = tape.context();
  const kernels::Unit& unit = *cell.unit;
  const Shape& shape = x->value.shape();
  kernels::MatrixRecurrence a;
  a.unit = &unit;
  a.width = cell.width;
  a.heads = cell.heads;
  a.state_width = cell.state_width;
  NMT_CHECK(shape.rank() == 3 && shape[2] == unit.inputs * cell.width &&
                shared->value.width() == a.shared_width() &&
                shared->value.rows() == x->value.rows(),
            "unit {} of width {} reads {} and {}", unit.name, cell.width, shape.text(),
            shared->value.shape().text());
  a.steps = shape[0];
  a.batch = shape[1];
  a.reverse = reverse;
  a.x = x->value.f32();
  a.shared = shared->value.f32();
  a.mask = pointer(mask);
  a.vectors = value_of(cell.vectors);
  a.rows = value_of(cell.rows);
  const std::int64_t wide = a.memory_width();
  NMT_CHECK(initial.empty() ||
                (initial.size() == 2 && initial[0]->value.elements() == a.batch * cell.width &&
                 initial[1]->value.elements() == a.batch * wide),
            "initial states of unit {} for {} rows of {} and {}", unit.name, a.batch, cell.width,
            wide);
  const Tensor h_before =
      initial.empty() ? zeros(context, {a.batch, cell.width}) : initial[0]->value;
  const Tensor memory_before =
      initial.empty() ? zeros(context, {a.batch, wide}) : initial[1]->value;
  a.h_before = h_before.f32();
  a.memory_before = memory_before.f32();
  const Var h = tape.result(context.empty({a.steps, a.batch, cell.width}));
  const Var memory = tape.constant(context.empty({1, a.batch, wide}));
  a.h = h->value.f32();
  a.memory = memory->value.f32();
  Tensor record;
  dispatch(context, [&](const auto& backend) {
    record = context.empty({kernels::matrix_record(backend, a)});
  });
  a.record = record.f32();
  Tensor checkpoints;
  if (tape.recording()) {
    const std::int64_t kept = (a.steps + kernels::matrix_stride - 1) / kernels::matrix_stride;
    checkpoints = context.empty({kept, a.batch, a.state_width * cell.width});
    a.checkpoints = checkpoints.f32();
  }
  {
    const Region region(context.profile, "recurrences", scan_work(a, false));
    dispatch(context, [&](const auto& backend) { kernels::matrix_forward(backend, a); });
  }
  if (Probe* probe = tape.probe())
    record_gates(context, *probe, cell, a, x, shared, memory_before, mask);
  if (!tape.recording()) return {h, memory};
  tape.record([&tape, &context, cell, a, x, shared, initial, mask, h, memory, h_before,
               memory_before, record, checkpoints] {
    if (!h->gradient) return;
    const Tensor dx = context.empty(x->value.shape()),
                 dshared = context.empty(shared->value.shape());
    Tensor dh_before, dmemory_before;
    kernels::MatrixGradient g;
    g.dh = h->gradient.f32();
    g.dx = dx.f32();
    g.dshared = dshared.f32();
    g.dvectors = gradient_of(cell.vectors);
    g.drows = gradient_of(cell.rows);
    if (!initial.empty()) {
      dh_before = context.empty(h_before.shape());
      dmemory_before = context.empty(memory_before.shape());
      g.dh_before = dh_before.f32();
      g.dmemory_before = dmemory_before.f32();
    }
    std::optional<Region> back(std::in_place, context.profile, "recurrences, back",
                               scan_work(a, true));
    dispatch(context, [&](const auto& backend) {
      const Tensor scratch = context.empty({kernels::matrix_scratch(backend, a)});
      g.scratch = scratch.f32();
      kernels::matrix_backward(backend, a, g);
    });
    back.reset();
    tape.accumulate(*x, dx);
    tape.accumulate(*shared, dshared);
    if (initial.empty()) return;
    tape.accumulate(*initial[0], dh_before);
    tape.accumulate(*initial[1], dmemory_before);
  });
  return {h, memory};
}

}  // namespace nmt::ops
