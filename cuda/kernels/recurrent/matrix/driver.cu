// The scan of matrix-state units (units/matrix/matrix_state.h), as kernels/recurrent/matrix_scan.h
// runs it on the CPU.

#include "cuda/kernels/columns.h"
#include "cuda/kernels/recurrent/matrix/scan.h"
#include "cuda/runtime/state.h"
#include "kernels/recurrent/matrix_state.h"

#include <algorithm>

namespace nmt::cuda {
namespace {

// The number of chunks of a scan of `tiles` tiles: as many as the multiprocessors can compute at
// once. Fewer than four would not pay for the two passes; the scan is then not divided.
std::int64_t chunks_for(const Cuda& cuda, const kernels::MatrixRecurrence& a, std::int64_t tiles) {
  // Blocks of a warp that a multiprocessor of every supported device runs at once (compute
  // capability 7.5: 16); the least number of chunks that pays for two passes; the least number of
  // steps of a chunk that pays for the states between chunks, which take as long as K / 3 steps
  // where P is a matrix.
  constexpr std::int64_t resident = 16, min_chunks = 4;
  const std::int64_t min_length =
      has_matrix_factors(*a.unit) ? std::max(32, 2 * a.state_width) : 32;
  const CudaDevice::State& state = state_of(cuda);
  if (!state.with_chunks || tiles == 0) return 1;
  const std::size_t shared =
      2 * sizeof(float) * warp_size * static_cast<std::size_t>(a.state_width);
  const std::int64_t warps = std::min<std::int64_t>(
      resident, static_cast<std::int64_t>(state.shared_per_multiprocessor / shared));
  const std::int64_t count = std::min(warps * state.multiprocessors / tiles, a.steps / min_length);
  return count < min_chunks ? 1 : count;
}

}  // namespace

ScanArguments scan_of(const Cuda& cuda, const kernels::MatrixRecurrence& a) {
  const kernels::MatrixState& state = *a.unit->matrix_state;
  ScanArguments s;
  s.a = a;
  s.head_input = a.head_input();
  s.shared_width = a.shared_width();
  s.memory_width = a.memory_width();
  s.part = a.width / a.heads;
  s.chains = a.batch * a.heads;
  s.tiles = divide_up(s.part, warp_size);
  s.memory = state.head_memory(a.state_width);
  s.output = 3 * a.state_width + state.extras + s.memory;
  const std::int64_t count = chunks_for(cuda, a, s.chains * s.tiles);
  const std::int64_t segments = divide_up(divide_up(a.steps, count), kernels::matrix_stride);
  s.length = std::max<std::int64_t>(1, segments) * kernels::matrix_stride;
  s.chunks = std::max<std::int64_t>(1, divide_up(a.steps, s.length));
  s.states = a.record ? a.record + s.chains * a.steps * s.output : nullptr;
  s.factors = a.record ? s.states + states_between(s) : nullptr;
  return s;
}

}  // namespace nmt::cuda

namespace nmt::kernels {

using namespace nmt::cuda;

std::int64_t matrix_record(const Cuda& cuda, const MatrixRecurrence& a) {
  const ScanArguments s = scan_of(cuda, a);
  return s.chains * a.steps * s.output + states_between(s) + factors_between(s);
}

void matrix_forward(const Cuda& cuda, const MatrixRecurrence& a) {
  const ScanArguments s = scan_of(cuda, a);
  prepare_heads(cuda, s);
  if (s.chunks > 1) {
    scan_ends(cuda, s);
    join_chunks(cuda, s);
  }
  scan_forward(cuda, s);
}

namespace {

// The offsets of the parts of MatrixScanScratch.
struct ScratchLayout {
  std::int64_t segments, sums, carries, end, sums_stride;

  explicit ScratchLayout(const ScanArguments& s) {
    const std::int64_t tiles = s.chains * s.tiles, k = s.a.state_width;
    sums_stride = (s.a.unit->vectors + s.a.unit->matrix_state->rows * k) * s.a.width;
    segments = tiles * s.a.steps * s.output;
    sums = segments + s.chunks * tiles * (matrix_stride + 1) * k * warp_size;
    carries = sums + s.chunks * s.a.batch * sums_stride;
    end = carries + states_between(s);
  }
};

}  // namespace

std::int64_t matrix_scratch(const Cuda& cuda, const MatrixRecurrence& a) {
  return ScratchLayout(scan_of(cuda, a)).end;
}

void matrix_backward(const Cuda& cuda, const MatrixRecurrence& a, const MatrixGradient& g) {
  const ScanArguments s = scan_of(cuda, a);
  const ScratchLayout layout(s);
  const MatrixScanScratch scratch{g.scratch, g.scratch + layout.segments, g.scratch + layout.sums,
                                  g.scratch + layout.carries, layout.sums_stride};
  scan_backward(cuda, s, g, scratch);
  prepare_heads_backward(cuda, s, g, scratch);
  const std::int64_t vectors = a.unit->vectors * a.width, rows = s.chunks * a.batch;
  const auto add = [&](std::int64_t skip, std::int64_t n, float* out) {
    const float* const sums = scratch.sums + skip;
    const std::int64_t stride = scratch.sums_stride;
    if (out)
      add_columns(
          cuda, rows, n,
          [=] __device__(std::int64_t r, std::int64_t i) { return sums[r * stride + i]; }, out);
  };
  add(0, vectors, g.dvectors);
  add(vectors, scratch.sums_stride - vectors, g.drows);
}

}  // namespace nmt::kernels
