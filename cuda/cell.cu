#include "nmt/kernels/gemm.h"
#include "nmt/kernels/gemm_batched.h"
#include "nmt/kernels/layer_norm.h"
#include "nmt/kernels/pointwise.h"
#include "nmt/kernels/rearrange.h"

#include "cuda/cell.h"
#include "cuda/columns.h"
#include "cuda/layer_norm.h"

namespace nmt::cuda {

using namespace nmt::kernels;

void product(const Cuda& cuda, std::int64_t groups, std::int64_t planes, std::int64_t rows, std::int64_t in,
             std::int64_t width, const float* from, const float* packed, bool accumulate, float* to) {
  const std::int64_t wide = planes * width;
  if (groups == 1) return gemm_packed(cuda, rows, wide, in, from, in, packed, accumulate, to, wide);
  const BlockDiagonal d{groups, planes, in / groups, width / groups};
  gemm_packed_batched(cuda, d.product(), rows, d.n, d.k, from, in, packed, accumulate, to, wide);
}

void product_transposed(const Cuda& cuda, std::int64_t groups, std::int64_t planes, std::int64_t rows, std::int64_t in,
                        std::int64_t width, const float* from, const float* packed, bool accumulate, float* to) {
  const std::int64_t wide = planes * width;
  if (groups == 1) return gemm_packed(cuda, rows, in, wide, from, wide, packed, accumulate, to, in);
  const BlockDiagonal d{groups, planes, in / groups, width / groups};
  gemm_packed_batched(cuda, d.input_gradient(), rows, d.k, d.n, from, wide, packed, accumulate, to, in);
}

namespace {

__global__ void layer_norm_backward_sums_kernel(std::int64_t planes, std::int64_t width, const float* normal,
                                                const float* rstd, const float* gain, float* dy, float* gain_sums,
                                                float* shift_sums, std::int64_t sums_stride) {
  const std::int64_t at = std::int64_t{blockIdx.x} * width, parameters = blockIdx.x % planes * width;
  const std::int64_t sums = blockIdx.x / planes * sums_stride + parameters;
  layer_norm_backward_plane(width, dy + at, normal + at, rstd[blockIdx.x], gain + parameters, dy + at,
                            [&](std::int64_t i) {
                              gain_sums[sums + i] += dy[at + i] * normal[at + i];
                              shift_sums[sums + i] += dy[at + i];
                            });
}

}  // namespace

void layer_norm_backward_sums(const Cuda& cuda, std::int64_t rows, std::int64_t planes, std::int64_t width,
                              const float* normal, const float* rstd, const float* gain, float* dy, float* gain_sums,
                              float* shift_sums, std::int64_t sums_stride) {
  launch(layer_norm_backward_sums_kernel, static_cast<unsigned>(rows * planes), threads_for(width), 0, cuda, planes,
         width, normal, rstd, gain, dy, gain_sums, shift_sums, sums_stride);
}

namespace {

float* part(float* base, std::int64_t row, std::int64_t width) {
  return base ? base + row * width : nullptr;
}

// What is the same at all steps.
void set_parameters(const Cell& cell, UnitSteps& step) {
  step.width = cell.width;
  step.vectors = cell.vectors;
  step.positions = cell.positions;
  step.position_rows = cell.position_rows;
  step.late_groups = cell.rearrange ? cell.groups : 1;
}

}  // namespace

void cell_forward(const Cuda& cuda, const Cell& cell, const CellRecord& record, std::int64_t at, UnitSteps step) {
  const Unit& unit = *cell.unit;
  const UnitKernels& run = kernels_of(unit);
  const std::int64_t h = cell.width, rows = step.rows;
  const int r = unit.recurrents, l = unit.late;
  set_parameters(cell, step);
  // The product with its normalisation; without one, the bias is left to the kernel that reads the product next.
  const auto multiply = [&](const float* from, const float* packed, int planes, int first_plane, float* to,
                            float* normal, float* rstd) {
    const std::int64_t skip = first_plane * h;
    const float* const bias = cell.bias ? cell.bias + skip : nullptr;
    product(cuda, cell.groups, planes, rows, h, h, from, packed, false, to);
    if (!cell.gain) return bias;
    if (bias) kernels::add_bias(cuda, rows, planes * h, to, bias, to);
    layer_norm(cuda, rows, planes, h, to, cell.gain + skip, cell.shift + skip, to, normal, rstd);
    return static_cast<const float*>(nullptr);
  };
  if (r > 0) {
    const float* h_before = step.previous[0];
    if (cell.rearrange) {
      float* const rearranged = part(record.rearranged, at, h);
      rearrange(cuda, rows, cell.groups, h, h_before, rearranged);
      h_before = rearranged;
    }
    step.u = part(record.u, at, r * h);
    step.u_bias =
        multiply(h_before, cell.recurrent.f32, r, 0, step.u, part(record.u_normal, at, r * h), part(record.u_rstd, at, r));
  }
  if (l > 0) {
    float* const value = part(record.late_value, at, h);
    run.late_value(cuda, step, value);
    step.u_bias = nullptr;
    step.late = part(record.late, at, l * h);
    step.late_bias =
        multiply(value, cell.late.f32, l, r, step.late, part(record.late_normal, at, l * h), part(record.late_rstd, at, l));
  }
  run.forward(cuda, step);
}

namespace {

// Floats a row of CellScratch::sums.
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

CellScratch start_cell(const Cuda& cuda, const Cell& cell, std::int64_t steps, std::int64_t batch, float** memory) {
  CellScratch scratch;
  scratch.sums = *memory;
  scratch.dpositions = scratch.sums + batch * cell_sums(cell);
  *memory = scratch.dpositions + steps * batch * position_floats(cell);
  fill(cuda, scratch.sums, batch * cell_sums(cell), 0.0f);
  return scratch;
}

std::int64_t cell_space(const Cell& cell) {
  return cell.rearrange || cell.unit->late > 0 ? cell.width : 0;
}

void cell_backward(const Cuda& cuda, const Cell& cell, const CellRecord& record, const CellGradient& gradient,
                   std::int64_t row, UnitSteps step, const float* dh, float* const* carry, const CellScratch& scratch,
                   float* temporary) {
  const Unit& unit = *cell.unit;
  const UnitKernels& run = kernels_of(unit);
  const std::int64_t h = cell.width, rows = step.rows, sums = cell_sums(cell);
  const int r = unit.recurrents, l = unit.late;
  set_parameters(cell, step);
  step.u = part(record.u, row, r * h);
  step.late = part(record.late, row, l * h);
  UnitStepsGradient d;
  d.dh = dh;
  std::copy_n(carry, unit.states, d.carry);
  d.dx = part(gradient.dx, row, unit.inputs * h);
  d.du = part(gradient.du, row, r * h);
  d.dlate = part(gradient.dlate, row, l * h);
  d.vector_sums = scratch.sums;
  d.sums_stride = sums;
  d.dpositions = part(scratch.dpositions, row, position_floats(cell));
  run.backward(cuda, step, d);
  float* const gain_sums = scratch.sums + unit.vectors * h;
  float* const shift_sums = gain_sums + (r + l) * h;
  const auto normal_backward = [&](float* dy, int planes, int first_plane, const float* normal, const float* rstd) {
    const std::int64_t skip = first_plane * h;
    layer_norm_backward_sums(cuda, rows, planes, h, normal, rstd, cell.gain + skip, dy, gain_sums + skip,
                             shift_sums + skip, sums);
  };
  if (l > 0) {
    if (cell.gain) normal_backward(d.dlate, l, r, part(record.late_normal, row, l * h), part(record.late_rstd, row, l));
    product_transposed(cuda, cell.groups, l, rows, h, h, d.dlate, cell.late_transposed, false, temporary);
    run.late_backward(cuda, step, temporary, d);
  }
  if (r > 0) {
    if (cell.gain) normal_backward(d.du, r, 0, part(record.u_normal, row, r * h), part(record.u_rstd, row, r));
    float* const dh_before = cell.rearrange ? temporary : carry[0];
    product_transposed(cuda, cell.groups, r, rows, h, h, d.du, cell.recurrent_transposed, !cell.rearrange, dh_before);
    if (cell.rearrange) rearrange_back(cuda, rows, cell.groups, h, dh_before, true, carry[0]);
  }
}

namespace {

// out[p] += the sum of the rows of [T,B] at position p; those past the table's end belong to its last row. A block has
// some columns of one position, whose rows follow each other.
__global__ void position_kernel(std::int64_t steps, std::int64_t batch, std::int64_t width, std::int64_t position,
                                std::int64_t last, const float* dpositions, float* out) {
  NMT_SHARED(sums, float[row_threads][column_threads]);
  const std::int64_t column = std::int64_t{blockIdx.x} * column_threads + threadIdx.x;
  const std::int64_t p = (position < last ? position : last) + blockIdx.y;
  const std::int64_t begin = p > position ? p - position : 0, end = p == last ? steps : p + 1 - position;
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

void finish_cell(const Cuda& cuda, const Cell& cell, std::int64_t steps, std::int64_t batch, std::int64_t position,
                 const CellScratch& scratch, const CellGradient& gradient) {
  const Unit& unit = *cell.unit;
  const std::int64_t planes = (unit.recurrents + unit.late) * cell.width, stride = cell_sums(cell);
  const float* sums = scratch.sums;
  const auto add = [&](std::int64_t n, float* out) {
    if (out)
      add_columns(
          cuda, batch, n, [=] __device__(std::int64_t r, std::int64_t i) { return sums[r * stride + i]; }, out);
    sums += n;
  };
  add(unit.vectors * cell.width, gradient.dvectors);
  if (cell.gain) {
    add(planes, gradient.dgain);
    add(planes, gradient.dshift);
  }
  if (unit.position_vectors == 0 || !gradient.dpositions || steps <= 0) return;
  const std::int64_t width = position_floats(cell), last = cell.position_rows - 1;
  const std::int64_t rows = std::min(position + steps - 1, last) - std::min(position, last) + 1;
  const dim3 grid(static_cast<unsigned>(divide_up(width, column_threads)), static_cast<unsigned>(rows));
  launch(position_kernel, grid, dim3(column_threads, row_threads), 0, cuda, steps, batch, width, position, last,
         scratch.dpositions, gradient.dpositions);
}

}  // namespace nmt::cuda
