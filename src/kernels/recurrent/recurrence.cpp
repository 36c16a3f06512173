#include "kernels/recurrent/recurrence.h"

#include "kernels/layer_norm.h"
#include "kernels/products/bf16/gemm_bf16.h"
#include "kernels/products/gemm.h"
#include "kernels/products/gemm_batched.h"
#include "kernels/products/int8/gemm_int8.h"
#include "kernels/recurrent/rearrange.h"
#include "kernels/recurrent/rows.h"

namespace nmt::kernels {
namespace {

// Initializes the rows of `to` with the bias, if there is one. Returns whether the product must
// accumulate.
bool start_with_bias(const float* bias, std::int64_t rows, std::int64_t width, float* to) {
  if (!bias) return false;
  for (std::int64_t r = 0; r < rows; ++r) std::copy_n(bias, width, to + r * width);
  return true;
}

// The factors of the cell's dropout for a share whose first row in [T,B] is `row`, or null.
const float* dropout_of(const Cell& cell, std::int64_t row) {
  return cell.dropout ? cell.dropout + row % cell.dropout_rows * cell.width : nullptr;
}

void multiply(std::int64_t n, const float* factors, float* x) {
  if (!factors) return;
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factors[i];
}

}  // namespace

void product_rows(const RowsCpu& on, std::int64_t groups, std::int64_t planes, std::int64_t rows,
                  std::int64_t in, std::int64_t width, const float* from,
                  const PackedWeight& packed, bool accumulate, float* to) {
  const std::int64_t wide = planes * width;
  if (packed.i8)
    return on.all_threads
               ? gemm_int8(on.cpu, rows, wide, in, from, in, packed.i8, accumulate, to, wide)
               : gemm_int8_rows(rows, wide, in, from, in, packed.i8, accumulate, to, wide);
  if (packed.bf16)
    return on.all_threads
               ? gemm_bf16(on.cpu, rows, wide, in, from, in, packed.bf16, accumulate, to, wide)
               : gemm_bf16_rows(rows, wide, in, from, in, packed.bf16, accumulate, to, wide);
  if (groups == 1)
    return on.all_threads
               ? gemm_packed(on.cpu, rows, wide, in, from, in, packed.f32, accumulate, to, wide)
               : gemm_packed_rows(on.cpu, rows, wide, in, from, in, packed.f32, accumulate, to,
                                  wide);
  const BlockDiagonal d{groups, planes, in / groups, width / groups};
  gemm_packed_batched_rows(on.cpu, d.product(), rows, d.n, d.k, from, in, packed.f32, accumulate,
                           to, wide);
}

void product_transposed_rows(const RowsCpu& on, std::int64_t groups, std::int64_t planes,
                             std::int64_t rows, std::int64_t in, std::int64_t width,
                             const float* from, const float* packed, bool accumulate, float* to) {
  const std::int64_t wide = planes * width;
  if (groups == 1)
    return on.all_threads
               ? gemm_packed(on.cpu, rows, in, wide, from, wide, packed, accumulate, to, in)
               : gemm_packed_rows(on.cpu, rows, in, wide, from, wide, packed, accumulate, to, in);
  const BlockDiagonal d{groups, planes, in / groups, width / groups};
  gemm_packed_batched_rows(on.cpu, d.input_gradient(), rows, d.k, d.n, from, wide, packed,
                           accumulate, to, in);
}

void add_shares(const float* parts, std::int64_t shares, std::int64_t stride, std::int64_t n,
                float* destination) {
  if (!destination) return;
  for (std::int64_t share = 0; share < shares; ++share)
    for (std::int64_t i = 0; i < n; ++i) destination[i] += parts[share * stride + i];
}

void cell_forward(const RowsCpu& on, const Cell& cell, const CellRecord& record, std::int64_t at,
                  UnitStep step) {
  const Unit& unit = *cell.unit;
  const std::int64_t h = cell.width, rows = step.rows;
  step.width = h;
  step.vectors = cell.vectors;
  const auto product = [&](const float* from, const PackedWeight& packed, int planes,
                           int first_plane, float* to, float* normal, float* rstd) {
    const std::int64_t width = planes * h, skip = first_plane * h;
    const bool add = start_with_bias(cell.bias ? cell.bias + skip : nullptr, rows, width, to);
    product_rows(on, cell.groups, planes, rows, h, h, from, packed, add, to);
    if (cell.gain)
      layer_norm_rows(rows, planes, h, to, cell.gain + skip, cell.norm_bias + skip, to, normal,
                      rstd);
  };
  const auto part = [at](float* base, std::int64_t width) {
    return base ? base + at * width : nullptr;
  };
  const int r = unit.recurrents, l = unit.late;
  const float* const dropout = dropout_of(cell, at);
  if (r > 0) {
    float* u = part(record.u, r * h);
    const float* h_before = step.previous[0];
    if (cell.rearrange || dropout) {
      float* read = part(record.rearranged, h);
      if (cell.rearrange)
        rearrange_rows(rows, cell.groups, h, h_before, read);
      else
        std::copy_n(h_before, rows * h, read);
      multiply(rows * h, dropout, read);
      h_before = read;
    }
    product(h_before, cell.recurrent, r, 0, u, part(record.u_normal, r * h),
            part(record.u_rstd, r));
    step.u = u;
  }
  if (l > 0) {
    float* late = part(record.late, l * h);
    float* value = part(record.late_value, h);
    float* plain = cell.rearrange ? late : value;  // `late` is free until the product
    unit.late_value(step, plain);
    if (cell.rearrange) rearrange_rows(rows, cell.groups, h, plain, value);
    multiply(rows * h, dropout, value);
    product(value, cell.late, l, r, late, part(record.late_normal, l * h),
            part(record.late_rstd, l));
    step.late = late;
  }
  unit.forward(step);
}

std::int64_t cell_sums(const Cell& cell) {
  const Unit& unit = *cell.unit;
  return (unit.vectors + cell.position_rows * unit.position_vectors +
          (cell.gain ? 2 * (unit.recurrents + unit.late) : 0)) *
         cell.width;
}

std::int64_t cell_space(const Cell& cell) {
  return cell.rearrange ? 2 * cell.width : cell.width;
}

void cell_backward(const RowsCpu& on, const Cell& cell, const CellRecord& record,
                   const CellGradient& gradient, std::int64_t row, UnitStep step,
                   float* const* carry, float* sums, float* temporary) {
  const Unit& unit = *cell.unit;
  const std::int64_t h = cell.width, rows = step.rows;
  const int r = unit.recurrents, l = unit.late;
  const float* const dropout = dropout_of(cell, row);
  const auto part = [row](float* base, std::int64_t width) {
    return base ? base + row * width : nullptr;
  };
  float* position_sums = sums + unit.vectors * h;
  float* gain_sums = position_sums + cell.position_rows * unit.position_vectors * h;
  float* norm_bias_sums = gain_sums + (r + l) * h;
  step.width = h;
  step.vectors = cell.vectors;
  step.u = part(record.u, r * h);
  step.late = part(record.late, l * h);
  UnitStepGradient d;
  for (int p = 0; p < unit.states; ++p) {
    d.dnext[p] = carry[p];
    d.dprevious[p] = carry[p];
  }
  d.dx = part(gradient.dx, unit.inputs * h);
  d.du = part(gradient.du, r * h);
  d.dlate = part(gradient.dlate, l * h);
  d.dvectors = sums;
  if (cell.positions) d.dposition = position_sums + (step.position - cell.positions);
  unit.backward(step, d);
  const auto normal_backward = [&](float* dy, int planes, int first_plane, const float* normal,
                                   const float* rstd) {
    const std::int64_t skip = first_plane * h;
    layer_norm_backward_rows(rows, planes, h, dy, normal, rstd, cell.gain + skip, dy,
                             gain_sums + skip, norm_bias_sums + skip);
  };
  if (l > 0) {
    if (cell.gain)
      normal_backward(d.dlate, l, r, part(record.late_normal, l * h), part(record.late_rstd, l));
    product_transposed_rows(on, cell.groups, l, rows, h, h, d.dlate, cell.late_transposed, false,
                            temporary);
    multiply(rows * h, dropout, temporary);
    float* dvalue = cell.rearrange ? temporary + rows * h : temporary;
    if (cell.rearrange) rearrange_back_rows(rows, cell.groups, h, temporary, false, dvalue);
    unit.late_backward(step, dvalue, d);
  }
  if (r > 0) {
    if (cell.gain)
      normal_backward(d.du, r, 0, part(record.u_normal, r * h), part(record.u_rstd, r));
    const bool is_plain = !cell.rearrange && !dropout;
    float* dh = is_plain ? carry[0] : temporary;
    product_transposed_rows(on, cell.groups, r, rows, h, h, d.du, cell.recurrent_transposed,
                            is_plain, dh);
    if (is_plain) return;
    multiply(rows * h, dropout, dh);
    if (cell.rearrange)
      rearrange_back_rows(rows, cell.groups, h, dh, true, carry[0]);
    else
      add_floats(rows * h, dh, carry[0]);
  }
}

void add_cell_sums(const Cell& cell, const float* sums, std::int64_t shares, std::int64_t stride,
                   const CellGradient& gradient) {
  const Unit& unit = *cell.unit;
  const std::int64_t h = cell.width, planes = (unit.recurrents + unit.late) * h;
  const auto add = [&](std::int64_t n, float* destination) {
    add_shares(sums, shares, stride, n, destination);
    sums += n;
  };
  add(unit.vectors * h, gradient.dvectors);
  add(cell.position_rows * unit.position_vectors * h, gradient.dpositions);
  if (!cell.gain) return;
  add(planes, gradient.dgain);
  add(planes, gradient.dnorm_bias);
}

namespace {

UnitStep unit_step(const Recurrence& a, const StepOffsets& at, std::int64_t begin,
                   std::int64_t end) {
  const std::int64_t h = a.cell.width;
  UnitStep step = begin_step<UnitStep>(a, at, a.cell, a.x, end - begin);
  step.position = position_row(a.cell, at.position);
  for (int p = 0; p < a.cell.unit->states; ++p) {
    step.previous[p] = state_before(a, at, p, begin, h);
    step.next[p] = a.states[p] + at.row * h;
  }
  return step;
}

// The slices of the channels of an element-wise unit, one for a thread, where fewer threads would
// have sentences: a few long ones. Each channel is computed as by a single thread, to the bit.
struct Slices {
  static constexpr std::int64_t channels = 64;  // a slice has a multiple of these

  Slices(const Cpu& cpu, const Recurrence& a)
      : width(a.cell.width), shares(cpu, (width + channels - 1) / channels, 1) {
    // Below this many rows, a thread takes less time than to wake the others.
    constexpr std::int64_t fewest_rows = 128;
    if (a.cell.unit->has_recurrent_product() || a.steps * a.batch < fewest_rows ||
        shares.count <= RowShares(cpu, a.batch).count)
      shares.count = 1;
  }
  bool pay() const { return shares.count > 1; }

  // body(first channel, end) on every thread that has a slice.
  template <class Body>
  void run(const Cpu& cpu, Body&& body) const {
    shares.run(cpu, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
      body(begin * channels, std::min(end * channels, width));
    });
  }

  std::int64_t width;
  RowShares shares;
};

}  // namespace

void recurrence_forward(const Cpu& cpu, const Recurrence& a) {
  if (const Slices slices(cpu, a); slices.pay())
    return slices.run(cpu, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t i = 0; i < a.steps; ++i) {
        const StepOffsets at = step_offsets(a, i, 0);
        UnitStep step = unit_step(a, at, 0, a.batch);
        step.first_channel = first;
        step.skipped_after = slices.width - end;
        cell_forward({cpu, false}, a.cell, a.record, at.at, step);
      }
    });
  const RowShares shares(cpu, a.batch);
  const RowsCpu on = shares.cpu(cpu);
  shares.run(cpu, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < a.steps; ++i) {
      const StepOffsets at = step_offsets(a, i, begin);
      cell_forward(on, a.cell, a.record, at.at, unit_step(a, at, begin, end));
    }
  });
}

// The sums of each share, or of all slices together, then temporary space for all rows.
std::int64_t recurrence_scratch(const Cpu& cpu, const Recurrence& a) {
  return RowShares(cpu, a.batch).count * cell_sums(a.cell) + a.batch * cell_space(a.cell);
}

namespace {

void backward_in_slices(const Cpu& cpu, const Recurrence& a, const RecurrenceGradient& g,
                        const Slices& slices) {
  const std::int64_t h = a.cell.width, sums = cell_sums(a.cell);
  std::fill_n(g.scratch, sums, 0.0f);
  float* carry[max_states]{};
  start_carry(a.cell, g.dinitial, 0, a.batch, carry);
  slices.run(cpu, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = a.steps - 1; i >= 0; --i) {
      const StepOffsets at = step_offsets(a, i, 0);
      for (std::int64_t b = 0; b < a.batch; ++b)
        add_floats(end - first, g.dh + (at.row + b) * h + first, carry[0] + b * h + first);
      UnitStep step = unit_step(a, at, 0, a.batch);
      step.first_channel = first;
      step.skipped_after = h - end;
      cell_backward({cpu, false}, a.cell, a.record, g.cell, at.row, step, carry, g.scratch,
                    nullptr);
    }
  });
  add_cell_sums(a.cell, g.scratch, 1, sums, g.cell);
}

}  // namespace

void recurrence_backward(const Cpu& cpu, const Recurrence& a, const RecurrenceGradient& g) {
  if (const Slices slices(cpu, a); slices.pay()) return backward_in_slices(cpu, a, g, slices);
  const RowShares shares(cpu, a.batch);
  const RowsCpu on = shares.cpu(cpu);
  const std::int64_t h = a.cell.width, sums = cell_sums(a.cell);
  std::fill_n(g.scratch, shares.count * sums, 0.0f);
  float* temporary = g.scratch + shares.count * sums;
  shares.run(cpu, [&](std::int64_t share, std::int64_t begin, std::int64_t end) {
    const std::int64_t n = (end - begin) * h;
    float* carry[max_states]{};
    start_carry(a.cell, g.dinitial, begin, end - begin, carry);
    for (std::int64_t i = a.steps - 1; i >= 0; --i) {
      const StepOffsets at = step_offsets(a, i, begin);
      add_floats(n, g.dh + at.row * h, carry[0]);
      cell_backward(on, a.cell, a.record, g.cell, at.row, unit_step(a, at, begin, end), carry,
                    g.scratch + share * sums, temporary + begin * cell_space(a.cell));
    }
  });
  add_cell_sums(a.cell, g.scratch, shares.count, sums, g.cell);
}

}  // namespace nmt::kernels
