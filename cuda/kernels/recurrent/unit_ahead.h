#pragma once

// Loads of later steps while a thread computes a step of a channel, for kernels that take all steps
// of an element-wise unit.

#include "cuda/kernels/recurrent/unit_step.h"

#include <bit>

namespace nmt::cuda {

/// The offsets of a channel at the current step, in arrays of [rows], [rows,H] and [rows,inputs*H].
/// Each step adds to the offsets: multiplications by 64-bit strides would be a third of the
/// instructions.
template <class U>
struct StepOffsets {
  std::int64_t row, channel, inputs;

  __device__ StepOffsets(const UnitSteps& a, const Channel& start, std::int64_t i)
      : row(start.row + i * a.stride),
        channel(row * a.width + start.column),
        inputs(row * U::inputs * a.width + start.column) {}
  /// To the next step; back(): to the previous one.
  __device__ __forceinline__ void forward(const UnitSteps& a) {
    row += a.stride;
    channel += a.stride * a.width;
    inputs += a.stride * U::inputs * a.width;
  }
  __device__ __forceinline__ void back(const UnitSteps& a) {
    row -= a.stride;
    channel -= a.stride * a.width;
    inputs -= a.stride * U::inputs * a.width;
  }
};

__device__ __forceinline__ std::uint32_t bits_of(float x) {
  return std::bit_cast<std::uint32_t>(x);
}
__device__ __forceinline__ std::uint32_t bits_of(Bfloat16 x) {
  return x;
}
template <class X>
__device__ __forceinline__ float number_of(std::uint32_t bits) {
  if constexpr (std::is_same_v<X, float>)
    return std::bit_cast<float>(bits);
  else
    return as_float(static_cast<X>(bits));
}

/// The inputs that a thread has loaded for a later step, as raw bits: a conversion or comparison of
/// a number would wait for its load.
template <class U>
struct Ahead {
  std::uint32_t x[at_least_one(U::inputs)];
  float position[at_least_one(position_vectors_of<U>)];
  float mask;

  /// Loads step i. X: float or Bfloat16.
  template <class X>
  __device__ __forceinline__ void load(const UnitSteps& a, const X* from, std::int64_t column,
                                       std::int64_t i, const StepOffsets<U>& offsets) {
    mask = 1.0f;
    if (a.mask) mask = a.mask[offsets.row];
    const X* const data = from + offsets.inputs;
    const auto plane = static_cast<std::int32_t>(a.width);
#pragma unroll
    for (std::int32_t p = 0; p < U::inputs; ++p) x[p] = bits_of(data[p * plane]);
    load_position<U>(a, column, i, position);
  }
  __device__ __forceinline__ bool is_live() const {
    return mask != 0.0f;
  }
  /// Without the states.
  template <class X>
  __device__ __forceinline__ Step<float, U> step(const float (&v)[at_least_one(U::vectors)]) const {
    Step<float, U> step;
#pragma unroll
    for (int p = 0; p < U::inputs; ++p) step.x[p] = number_of<X>(x[p]);
#pragma unroll
    for (int p = 0; p < U::vectors; ++p) step.v[p] = v[p];
#pragma unroll
    for (int p = 0; p < position_vectors_of<U>; ++p) step.position[p] = position[p];
    return step;
  }
};

/// Stores the gradient of x: in float32, or rounded where dx is null.
template <class U, std::size_t n>
__device__ __forceinline__ void store_dx(const UnitStepsGradient& g, const StepOffsets<U>& offsets,
                                         std::int64_t h, const float (&from)[n]) {
  const auto plane = static_cast<std::int32_t>(h);
#pragma unroll
  for (std::int32_t p = 0; p < U::inputs; ++p)
    if (g.dx)
      g.dx[offsets.inputs + p * plane] = from[p];
    else
      assign(g.dx_rounded[offsets.inputs + p * plane], from[p]);
}

/// Calls use(x) with the inputs in their type. `use` is compiled for both types: a branch between
/// loads may wait for them.
template <class U, class Use>
__device__ __forceinline__ void with_inputs(const UnitSteps& a, Use&& use) {
  if (U::late > 0 || a.x)
    use(a.x);
  else
    use(a.x_rounded);
}

}  // namespace nmt::cuda
