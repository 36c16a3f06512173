#include "cuda/kernels/columns.h"
#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/products/product_operands.h"
#include "cuda/kernels/recurrent/cell.h"
#include "kernels/pointwise.h"
#include "kernels/products/gemm.h"
#include "kernels/products/gemm_batched.h"
#include "kernels/recurrent/rearrange.h"

namespace nmt::cuda {

using namespace nmt::kernels;

namespace {

// to [rows, n] (+)= from [rows, k] W, W packed.
void dense_product(const Cuda& cuda, std::int64_t rows, std::int64_t n, std::int64_t k,
                   const ProductInput& from, const float* packed, bool accumulate, float* to) {
  multiply(cuda, {.m = rows,
                  .n = n,
                  .k = k,
                  .a = operand_of(from, false, k, k),
                  .b = packed_operand(cuda, packed, k, 0),
                  .beta = accumulate ? 1.0f : 0.0f,
                  .c = to,
                  .ldc = n});
}

}  // namespace

void product(const Cuda& cuda, std::int64_t groups, std::int64_t planes, std::int64_t rows,
             std::int64_t in, std::int64_t width, const ProductInput& from, const float* packed,
             bool accumulate, float* to) {
  const std::int64_t wide = planes * width;
  if (groups == 1) return dense_product(cuda, rows, wide, in, from, packed, accumulate, to);
  const BlockDiagonal d{groups, planes, in / groups, width / groups};
  gemm_packed_batched(cuda, d.product(), rows, d.n, d.k, from.f32, in, packed, accumulate, to,
                      wide);
}

void product_transposed(const Cuda& cuda, std::int64_t groups, std::int64_t planes,
                        std::int64_t rows, std::int64_t in, std::int64_t width,
                        const ProductInput& from, const float* packed, bool accumulate, float* to) {
  const std::int64_t wide = planes * width;
  if (groups == 1) return dense_product(cuda, rows, in, wide, from, packed, accumulate, to);
  const BlockDiagonal d{groups, planes, in / groups, width / groups};
  gemm_packed_batched(cuda, d.input_gradient(), rows, d.k, d.n, from.f32, wide, packed, accumulate,
                      to, in);
}

namespace {

// The normalization of some planes of a cell's products, from `first_plane` on.
RowNorm row_norm(const Cell& cell, int first_plane, float* normal, float* rstd) {
  RowNorm norm;
  if (!cell.gain) return norm;
  norm.gain = cell.gain + first_plane * cell.width;
  norm.norm_bias = cell.norm_bias + first_plane * cell.width;
  norm.normal = normal;
  norm.rstd = rstd;
  return norm;
}

// to = from * factors, or to += from * factors.
void multiply(const Cuda& cuda, std::int64_t n, const float* factors, const float* from,
              bool accumulate, float* to) {
  each(cuda, n, [=] __device__(std::int64_t i) {
    const float product = from[i] * factors[i];
    to[i] = accumulate ? to[i] + product : product;
  });
}

}  // namespace

void set_parameters(const Cell& cell, const CellRecord& record, std::int64_t record_row,
                    UnitSteps& step) {
  const int r = cell.unit->recurrents, l = cell.unit->late;
  const std::int64_t h = cell.width;
  // Kernels compute the offset of a plane in its row in 32 bits.
  constexpr std::int64_t max_row_floats = std::numeric_limits<std::int32_t>::max();
  const int planes = std::max({cell.unit->inputs, r, l, cell.unit->vectors});
  NMT_CHECK(planes * h <= max_row_floats,
            "unit {}: rows of {} planes of {} channels: at most {} are possible", cell.unit->name,
            planes, h, max_row_floats / planes);
  step.width = h;
  step.vectors = cell.vectors;
  step.positions = cell.positions;
  step.position_rows = cell.position_rows;
  step.late_groups = cell.rearrange ? cell.groups : 1;
  step.u = part(record.u, record_row, r * h);
  step.late = part(record.late, record_row, l * h);
  step.late_value_rounded = part(record.late_value_rounded, record_row, h);
  if (r > 0)
    step.u_norm = row_norm(cell, 0, part(record.u_normal, record_row, r * h),
                           part(record.u_rstd, record_row, r));
  if (l > 0)
    step.late_norm = row_norm(cell, r, part(record.late_normal, record_row, l * h),
                              part(record.late_rstd, record_row, l));
}

void cell_forward(const Cuda& cuda, const Cell& cell, const CellRecord& record,
                  std::int64_t record_row, UnitSteps step) {
  const Unit& unit = *cell.unit;
  const std::int64_t h = cell.width, rows = step.rows;
  const int r = unit.recurrents, l = unit.late;
  set_parameters(cell, record, record_row, step);
  const UnitKernels& run = kernels_of(unit, cell.gain || step.raw_x);
  // The kernel that reads the product next applies bias and normalization.
  if (r > 0) {
    ProductInput h_before(step.previous[0], step.previous_rounded);
    if (cell.rearrange) {
      float* const rearranged = part(record.rearranged, record_row, h);
      rearrange(cuda, rows, cell.groups, h, h_before.f32, rearranged);
      h_before = rearranged;
    }
    if (cell.dropout) {
      float* const read = part(record.rearranged, record_row, h);
      multiply(cuda, rows * h, cell.dropout, h_before.f32, false, read);
      h_before = read;
    }
    product(cuda, cell.groups, r, rows, h, h, h_before, cell.recurrent.f32, false, step.u);
    step.u_bias = cell.bias;
  }
  if (l > 0) {
    float* const value = part(record.late_value, record_row, h);
    run.late_value(cuda, step, value);
    if (cell.dropout) multiply(cuda, rows * h, cell.dropout, value, false, value);
    step.u_bias = nullptr;
    product(cuda, cell.groups, l, rows, h, h, {value, step.late_value_rounded}, cell.late.f32,
            false, step.late);
    step.late_bias = cell.bias ? cell.bias + r * h : nullptr;
  }
  run.forward(cuda, step);
}

namespace {

// Floats in a row of CellScratch::sums.
std::int64_t cell_sums(const Cell& cell) {
  const Unit& unit = *cell.unit;
  return (unit.vectors + (cell.gain ? 2 * (unit.recurrents + unit.late) : 0)) * cell.width;
}

std::int64_t position_floats(const Cell& cell) {
  return cell.unit->position_vectors * cell.width;
}

}  // namespace

std::int64_t cell_scratch(const Cell& cell, std::int64_t steps, std::int64_t batch) {
  return batch * (cell_sums(cell) + steps * position_floats(cell));
}

CellScratch start_cell(const Cuda& cuda, const Cell& cell, std::int64_t steps, std::int64_t batch,
                       float** memory) {
  CellScratch scratch;
  scratch.sums = *memory;
  scratch.dpositions = scratch.sums + batch * cell_sums(cell);
  *memory = scratch.dpositions + steps * batch * position_floats(cell);
  fill(cuda, scratch.sums, batch * cell_sums(cell), 0.0f);
  return scratch;
}

std::int64_t cell_space(const Cell& cell) {
  return cell.rearrange || cell.dropout || cell.unit->late > 0 ? cell.width : 0;
}

UnitStepsGradient step_gradient(const Cell& cell, const CellGradient& gradient, std::int64_t row,
                                const CellScratch& scratch) {
  const Unit& unit = *cell.unit;
  const std::int64_t h = cell.width;
  UnitStepsGradient d;
  d.dx = part(gradient.dx, row, unit.inputs * h);
  d.du = part(gradient.du, row, unit.recurrents * h);
  d.dlate = part(gradient.dlate, row, unit.late * h);
  d.dx_rounded = part(gradient.dx_rounded, row, unit.inputs * h);
  d.du_rounded = part(gradient.du_rounded, row, unit.recurrents * h);
  d.dlate_rounded = part(gradient.dlate_rounded, row, unit.late * h);
  d.vector_sums = scratch.sums;
  d.sums_stride = cell_sums(cell);
  d.dpositions = part(scratch.dpositions, row, position_floats(cell));
  return d;
}

void set_sums(const Cell& cell, const CellScratch& scratch, UnitSteps& step) {
  const std::int64_t h = cell.width;
  const int r = cell.unit->recurrents, l = cell.unit->late;
  float* const gain_sums = scratch.sums + cell.unit->vectors * h;
  const auto set = [&](RowNorm& norm, int first_plane) {
    norm.gain_sums = gain_sums + first_plane * h;
    norm.norm_bias_sums = norm.gain_sums + (r + l) * h;
    norm.sums_stride = cell_sums(cell);
  };
  set(step.u_norm, 0);
  set(step.late_norm, r);
}

void cell_backward(const Cuda& cuda, const Cell& cell, const CellRecord& record,
                   const CellGradient& gradient, std::int64_t row, UnitSteps step, const float* dh,
                   float* const* carry, const CellScratch& scratch, float* temporary,
                   bool from_zero) {
  const Unit& unit = *cell.unit;
  const std::int64_t h = cell.width, rows = step.rows;
  const int r = unit.recurrents, l = unit.late;
  set_parameters(cell, record, row, step);
  const bool rounds_dx = gradient.dx && gradient.dx_rounded && !unit.has_recurrent_product();
  NMT_CHECK(step.steps == 1 || !rounds_dx, "unit {}: {} steps round dx beside dx", unit.name,
            step.steps);
  const UnitKernels& run = kernels_of(unit, cell.gain || step.raw_x || rounds_dx);
  set_sums(cell, scratch, step);
  UnitStepsGradient d = step_gradient(cell, gradient, row, scratch);
  d.dh = dh;
  std::copy_n(carry, unit.states, d.carry);
  d.from_zero = from_zero ? 1 : 0;
  run.backward(cuda, step, d);
  if (l > 0) {
    product_transposed(cuda, cell.groups, l, rows, h, h, {d.dlate, d.dlate_rounded},
                       cell.late_transposed, false, temporary);
    if (cell.dropout) multiply(cuda, rows * h, cell.dropout, temporary, false, temporary);
    run.late_backward(cuda, step, temporary, d);
  }
  if (r > 0) {
    const bool is_plain = !cell.rearrange && !cell.dropout;
    float* const dh_before = is_plain ? carry[0] : temporary;
    product_transposed(cuda, cell.groups, r, rows, h, h, {d.du, d.du_rounded},
                       cell.recurrent_transposed, is_plain, dh_before);
    if (cell.dropout)
      multiply(cuda, rows * h, cell.dropout, dh_before, !cell.rearrange,
               cell.rearrange ? dh_before : carry[0]);
    if (cell.rearrange) rearrange_back(cuda, rows, cell.groups, h, dh_before, true, carry[0]);
  }
}

namespace {

// out[p] += the sum of the rows of [T,B] at position p; positions past the end of the table use its
// last row. A block sums some columns of one position, whose rows are consecutive. The grid has one
// dimension, since there may be more positions than the others allow.
__global__ void position_kernel(std::int64_t steps, std::int64_t batch, std::int64_t width,
                                std::int64_t position, std::int64_t last, const float* dpositions,
                                float* out) {
  NMT_SHARED(sums, float[row_threads][column_threads]);
  const std::int64_t tiles = divide_up(width, column_threads),
                     column = blockIdx.x % tiles * column_threads + threadIdx.x;
  const std::int64_t p = (position < last ? position : last) + blockIdx.x / tiles;
  const std::int64_t begin = p > position ? p - position : 0,
                     end = p == last ? steps : p + 1 - position;
  float sum = 0;
  if (column < width)
    for (std::int64_t r = begin * batch + threadIdx.y; r < end * batch; r += row_threads)
      sum += dpositions[r * width + column];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && column < width) {
    for (unsigned i = 1; i < row_threads; ++i) sum += sums[i][threadIdx.x];
    out[p * width + column] += sum;
  }
}

}  // namespace

void finish_cell(const Cuda& cuda, const Cell& cell, std::int64_t steps, std::int64_t batch,
                 std::int64_t position, const CellScratch& scratch, const CellGradient& gradient) {
  const Unit& unit = *cell.unit;
  const std::int64_t planes = (unit.recurrents + unit.late) * cell.width, stride = cell_sums(cell);
  const float* sums = scratch.sums;
  const auto add = [&](std::int64_t n, float* out) {
    if (out)
      add_columns(
          cuda, batch, n,
          [=] __device__(std::int64_t r, std::int64_t i) { return sums[r * stride + i]; }, out);
    sums += n;
  };
  add(unit.vectors * cell.width, gradient.dvectors);
  if (cell.gain) {
    add(planes, gradient.dgain);
    add(planes, gradient.dnorm_bias);
  }
  if (unit.position_vectors == 0 || !gradient.dpositions || steps <= 0) return;
  const std::int64_t width = position_floats(cell), last = cell.position_rows - 1;
  const std::int64_t rows = std::min(position + steps - 1, last) - std::min(position, last) + 1;
  const auto blocks = static_cast<unsigned>(rows * divide_up(width, column_threads));
  launch(position_kernel, blocks, dim3(column_threads, row_threads), 0, cuda, steps, batch, width,
         position, last, scratch.dpositions, gradient.dpositions);
}

}  // namespace nmt::cuda
