#include "cuda/kernels/recurrent/unit_step.h"
#include "cuda/kernels/recurrent/unit_table.h"
#include "cuda/kernels/reduce.h"
#include "kernels/layer_norm.h"

// The units' steps with layer normalization of their inputs, one block per row. A thread always has
// the same columns, so it reads what it wrote without a barrier.

namespace nmt::cuda {
namespace {

// Turns a product into the unit's input: adds the bias and normalizes the planes.
template <int planes>
__device__ __forceinline__ void complete(float* y, const float* bias, const RowNorm& norm,
                                         std::int64_t row, std::int64_t h) {
  if constexpr (planes > 0) {
    if (!norm.gain && !bias) return;
    const float inverse = 1.0f / static_cast<float>(h);
    float* const at = y + row * planes * h;
    float mean[planes] = {}, scale[planes] = {};
    for (std::int64_t column = threadIdx.x; column < h; column += blockDim.x)
#pragma unroll
      for (int p = 0; p < planes; ++p) {
        const std::int64_t i = p * h + column;
        if (bias) at[i] += bias[i];
        mean[p] += at[i];
      }
    if (!norm.gain) return;
    block_sums(mean);
#pragma unroll
    for (int p = 0; p < planes; ++p) mean[p] *= inverse;
    for (std::int64_t column = threadIdx.x; column < h; column += blockDim.x)
#pragma unroll
      for (int p = 0; p < planes; ++p) {
        const float d = at[p * h + column] - mean[p];
        scale[p] += d * d;
      }
    block_sums(scale);
#pragma unroll
    for (int p = 0; p < planes; ++p) {
      scale[p] = 1.0f / sqrtf(scale[p] * inverse + kernels::layer_norm_epsilon);
      if (norm.rstd && threadIdx.x == 0) norm.rstd[row * planes + p] = scale[p];
    }
    for (std::int64_t column = threadIdx.x; column < h; column += blockDim.x)
#pragma unroll
      for (int p = 0; p < planes; ++p) {
        const std::int64_t i = p * h + column;
        const float n = (at[i] - mean[p]) * scale[p];
        if (norm.normal) norm.normal[row * planes * h + i] = n;
        at[i] = n * norm.gain[i] + norm.norm_bias[i];
      }
  }
}

// Turns the gradient of the unit's input into that of the product (equation: layer_norm.cu).
template <int planes>
__device__ __forceinline__ void complete_backward(float* dy, const RowNorm& norm, std::int64_t row,
                                                  std::int64_t h) {
  if constexpr (planes > 0) {
    if (!norm.gain) return;
    const float inverse = 1.0f / static_cast<float>(h);
    float* const at = dy + row * planes * h;
    const float* const normal = norm.normal + row * planes * h;
    float *const gain_sums = norm.gain_sums + row * norm.sums_stride, *const norm_bias_sums =
                                                                          norm.norm_bias_sums +
                                                                          row * norm.sums_stride;
    float mean[planes] = {}, along[planes] = {};
    for (std::int64_t column = threadIdx.x; column < h; column += blockDim.x)
#pragma unroll
      for (int p = 0; p < planes; ++p) {
        const std::int64_t i = p * h + column;
        const float g = at[i] * norm.gain[i];
        mean[p] += g;
        along[p] += g * normal[i];
      }
    block_sums(mean);
    block_sums(along);
    for (std::int64_t column = threadIdx.x; column < h; column += blockDim.x)
#pragma unroll
      for (int p = 0; p < planes; ++p) {
        const std::int64_t i = p * h + column;
        const float d = at[i];
        gain_sums[i] += d * normal[i];
        norm_bias_sums[i] += d;
        at[i] = norm.rstd[row * planes + p] *
                (d * norm.gain[i] - mean[p] * inverse - normal[i] * along[p] * inverse);
      }
  }
}

template <class U>
__global__ void forward_kernel(UnitSteps a) {
  const std::int64_t row = blockIdx.x, h = a.width;
  if constexpr (U::late > 0) {
    complete<U::late>(a.late, a.late_bias, a.late_norm, row, h);
  } else {
    complete<U::recurrents>(a.u, a.u_bias, a.u_norm, row, h);
    complete<U::inputs>(a.raw_x, a.x_bias, a.x_norm, row, h);
  }
  for (std::int64_t column = threadIdx.x; column < h; column += blockDim.x) {
    bool live;
    const Step<float, U> step = load_all<U>(a, {row, column}, true, live);
    float state[U::states];
    for (int p = 0; p < U::states; ++p) state[p] = step.s[p];
    if (live) U::forward(step, state);
    for (int p = 0; p < U::states; ++p) a.next[p][row * h + column] = state[p];
  }
}

template <class U>
__global__ void late_value_kernel(UnitSteps a, float* out) {
  const std::int64_t row = blockIdx.x, h = a.width;
  complete<U::recurrents>(a.u, a.u_bias, a.u_norm, row, h);
  complete<U::inputs>(a.raw_x, a.x_bias, a.x_norm, row, h);
  for (std::int64_t column = threadIdx.x; column < h; column += blockDim.x) {
    const Channel at{row, column};
    bool live;
    out[late_place(a, at)] = U::late_value(load_all<U>(a, at, false, live));
  }
}

template <class U>
__global__ void backward_kernel(UnitSteps a, UnitStepsGradient g) {
  const std::int64_t row = blockIdx.x, h = a.width;
  for (std::int64_t column = threadIdx.x; column < h; column += blockDim.x) {
    const std::int64_t n = row * h + column;
    bool live;
    const Step<float, U> step = load_all<U>(a, {row, column}, true, live);
    float carry[U::states];
    for (int p = 0; p < U::states; ++p) carry[p] = g.carry[p][n];
    if (g.dh) carry[0] += g.dh[n];
    Step<float, U> d{};
    if (live) {
      U::backward(step, carry, d);
      for (int p = 0; p < U::vectors; ++p)
        g.vector_sums[row * g.sums_stride + p * h + column] += d.v[p];
      for (int p = 0; p < U::states; ++p) carry[p] = d.s[p];
    }
    store_planes<U::inputs>(g.dx, row, column, h, d.x);
    store_planes<U::recurrents>(g.du, row, column, h, d.u);
    store_planes<U::late>(g.dlate, row, column, h, d.late);
    store_planes<position_vectors_of<U>>(g.dpositions, row, column, h, d.position);
    for (int p = 0; p < U::states; ++p) g.carry[p][n] = carry[p];
  }
  if constexpr (U::late > 0) {
    complete_backward<U::late>(g.dlate, a.late_norm, row, h);
  } else {
    complete_backward<U::recurrents>(g.du, a.u_norm, row, h);
    complete_backward<U::inputs>(g.dx, a.x_norm, row, h);
  }
}

template <class U>
__global__ void late_backward_kernel(UnitSteps a, const float* dlate_value, UnitStepsGradient g) {
  const std::int64_t row = blockIdx.x, h = a.width;
  for (std::int64_t column = threadIdx.x; column < h; column += blockDim.x) {
    const Channel at{row, column};
    bool live;
    const Step<float, U> step = load_all<U>(a, at, true, live);
    if (!live) continue;
    Step<float, U> d{};
    U::late_backward(step, dlate_value[late_place(a, at)], d);
    add_planes<U::inputs>(g.dx, row, column, h, d.x);
    add_planes<U::recurrents>(g.du, row, column, h, d.u);
    for (int p = 0; p < U::states; ++p) g.carry[p][row * h + column] += d.s[p];
  }
  complete_backward<U::recurrents>(g.du, a.u_norm, row, h);
  complete_backward<U::inputs>(g.dx, a.x_norm, row, h);
}

template <class Kernel, class... Arguments>
void launch_rows(const Cuda& cuda, Kernel kernel, const UnitSteps& a,
                 const Arguments&... arguments) {
  launch(kernel, static_cast<unsigned>(a.rows), threads_for(a.width, 512), 0, cuda, a,
         arguments...);
}

template <class U>
struct Rows {
  static void forward(const Cuda& cuda, const UnitSteps& a) {
    launch_rows(cuda, forward_kernel<U>, a);
  }
  static void backward(const Cuda& cuda, const UnitSteps& a, const UnitStepsGradient& g) {
    launch_rows(cuda, backward_kernel<U>, a, g);
  }
  static void late_value(const Cuda& cuda, const UnitSteps& a, float* out) {
    launch_rows(cuda, late_value_kernel<U>, a, out);
  }
  static void late_backward(const Cuda& cuda, const UnitSteps& a, const float* dlate_value,
                            const UnitStepsGradient& g) {
    launch_rows(cuda, late_backward_kernel<U>, a, dlate_value, g);
  }
};

}  // namespace

const UnitKernels& row_kernels(const kernels::Unit& unit) {
  return kernels_in_table<Rows>(unit);
}

}  // namespace nmt::cuda
