#pragma once

// Loads and stores of a channel's values, shared by the kernels of the units.

#include "cuda/kernels/assign.h"
#include "cuda/kernels/recurrent/unit.h"
#include "cuda/runtime/launch.h"
#include "units/all.h"

namespace nmt::cuda {

using namespace nmt::units;

struct Channel {
  std::int64_t row, column;
};

/// Whether the device is newer than Hopper: the compiler gives kernels more registers there.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr bool is_newer = true;
#else
constexpr bool is_newer = false;
#endif

/// Threads of a block where each thread has a channel.
constexpr unsigned channel_threads = 128;
/// Resident blocks per multiprocessor in kernels that take all steps: with 64 registers per thread,
/// all rows of a usual batch (128 sentences of width 1024) run in one wave on 132 multiprocessors,
/// without a second, mostly empty wave.
constexpr int channel_blocks = 8;

// `planes` values of a channel from rows of planes*H.
template <int planes, class T, std::size_t n>
__device__ __forceinline__ void load_planes(const T* from, std::int64_t row, std::int64_t column,
                                            std::int64_t h, float (&to)[n]) {
  const T* const data = from + (row * planes * h + column);
  const auto plane = static_cast<std::int32_t>(h);
#pragma unroll
  for (std::int32_t p = 0; p < planes; ++p) to[p] = as_float(data[p * plane]);
}
template <int planes, class T, std::size_t n>
__device__ __forceinline__ void store_planes(T* to, std::int64_t row, std::int64_t column,
                                             std::int64_t h, const float (&from)[n]) {
  T* const data = to + (row * planes * h + column);
  const auto plane = static_cast<std::int32_t>(h);
#pragma unroll
  for (std::int32_t p = 0; p < planes; ++p) assign(data[p * plane], from[p]);
}
/// Stores the gradient of x: in float32, or rounded where dx is null.
template <class U, std::size_t n>
__device__ __forceinline__ void store_dx(const UnitStepsGradient& g, std::int64_t row,
                                         std::int64_t column, std::int64_t h,
                                         const float (&from)[n]) {
  if (U::late > 0 || g.dx)
    store_planes<U::inputs>(g.dx, row, column, h, from);
  else
    store_planes<U::inputs>(g.dx_rounded, row, column, h, from);
}
template <int planes, std::size_t n>
__device__ __forceinline__ void add_planes(float* to, std::int64_t row, std::int64_t column,
                                           std::int64_t h, const float (&from)[n]) {
  float* const data = to + (row * planes * h + column);
  const auto plane = static_cast<std::int32_t>(h);
#pragma unroll
  for (std::int32_t p = 0; p < planes; ++p) data[p * plane] += from[p];
}
/// Rounds planes that this thread has stored.
template <int planes>
__device__ __forceinline__ void round_planes(const float* from, std::int64_t row,
                                             std::int64_t column, std::int64_t h, Bfloat16* to) {
  if constexpr (planes > 0) {
    if (!to) return;
#pragma unroll
    for (int p = 0; p < planes; ++p) {
      const std::int64_t i = (row * planes + p) * h + column;
      assign(to[i], from[i]);
    }
  }
}
template <int planes>
__device__ __forceinline__ void add_bias(const float* bias, std::int64_t row, std::int64_t column,
                                         std::int64_t h, float* to) {
  if constexpr (planes > 0) {
    if (!bias) return;
#pragma unroll
    for (int p = 0; p < planes; ++p) to[(row * planes + p) * h + column] += bias[p * h + column];
  }
}

// The position vectors of step i for a channel.
template <class U, std::size_t n>
__device__ __forceinline__ void load_position(const UnitSteps& a, std::int64_t column,
                                              std::int64_t i, float (&to)[n]) {
  if constexpr (position_vectors_of < U >> 0) {
    const std::int64_t position = a.position + (a.stride < 0 ? -i : i);
    load_planes<position_vectors_of<U>>(a.positions,
                                        position < a.position_rows ? position : a.position_rows - 1,
                                        column, a.width, to);
  }
}

// Projections, position vectors and mask of step i for a channel.
template <class U>
__device__ __forceinline__ void load_inputs(const UnitSteps& a, const Channel& channel,
                                            std::int64_t i, Step<float, U>& step, bool& live) {
  const std::int64_t h = a.width, row = channel.row + i * a.stride, column = channel.column;
  live = !a.mask || a.mask[row] != 0.0f;
  if (U::late > 0 || a.x)
    load_planes<U::inputs>(a.x, row, column, h, step.x);
  else
    load_planes<U::inputs>(a.x_rounded, row, column, h, step.x);
  load_position<U>(a, column, i, step.position);
}

// The inputs of step i for a channel, without the states and the shared vectors.
template <class U>
__device__ __forceinline__ void load_step(const UnitSteps& a, const Channel& channel,
                                          std::int64_t i, bool with_late, Step<float, U>& step,
                                          bool& live) {
  load_inputs<U>(a, channel, i, step, live);
  const std::int64_t row = channel.row + i * a.stride;
  load_planes<U::recurrents>(a.u, row, channel.column, a.width, step.u);
  if (with_late) load_planes<U::late>(a.late, row, channel.column, a.width, step.late);
}

// The states before step i, from memory.
template <class U>
__device__ __forceinline__ void load_states(const UnitSteps& a, const Channel& channel,
                                            std::int64_t i, Step<float, U>& step) {
  const std::int64_t h = a.width;
#pragma unroll
  for (int p = 0; p < U::states; ++p)
    step.s[p] = i == 0 ? a.previous[p][channel.row * h + channel.column]
                       : a.next[p][(channel.row + (i - 1) * a.stride) * h + channel.column];
}

// The offset of a channel of the late value, whose rows are rearranged (rearrange.h).
__device__ __forceinline__ std::int64_t late_value_offset(const UnitSteps& a,
                                                          const Channel& channel) {
  const std::int64_t part = a.width / a.late_groups;
  return channel.row * a.width + channel.column % part * a.late_groups + channel.column / part;
}

template <class U>
__device__ __forceinline__ Step<float, U> load_all(const UnitSteps& a, const Channel& channel,
                                                   bool with_late, bool& live) {
  Step<float, U> step{};
  load_step<U>(a, channel, 0, with_late, step, live);
  load_planes<U::vectors>(a.vectors, 0, channel.column, a.width, step.v);
  load_states<U>(a, channel, 0, step);
  return step;
}

}  // namespace nmt::cuda
