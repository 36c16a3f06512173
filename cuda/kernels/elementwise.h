#pragma once

#include "cuda/kernels/divisor.h"
#include "cuda/runtime/launch.h"

#include <limits>

namespace nmt::cuda {

template <class Body>
__global__ void each_kernel(std::int64_t n, Body body) {
  for (std::int64_t i = grid_index(); i < n; i += grid_stride()) body(i);
}

constexpr unsigned each_threads = 256;

/// body(i) for every i in [0, n), a __device__ lambda: each(cuda, n, [=] __device__(std::int64_t i)
/// { y[i] = x[i]; });
template <class Body>
void each(const Cuda& cuda, std::int64_t n, Body body) {
  launch(each_kernel<Body>, blocks_for(cuda, n, each_threads), each_threads, 0, cuda, n, body);
}

template <class Body, class Width>
__global__ void each_of_rows_kernel(typename Width::Index n, Width width, Body body) {
  using Index = typename Width::Index;
  for (auto i = static_cast<Index>(grid_index()); i < n; i += static_cast<Index>(grid_stride())) {
    const Index row = width.quotient(i);
    body(static_cast<std::int64_t>(row), static_cast<std::int32_t>(i - row * width.divisor()));
  }
}

/// body(row, column) for the elements of a matrix [rows,width], a __device__ lambda: instead of
/// each() where the body would divide by the width. Indices have 32 bits where they suffice.
template <class Body>
void each_of_rows(const Cuda& cuda, std::int64_t rows, std::int64_t width, Body body) {
  if (rows <= 0 || width <= 0) return;
  constexpr std::int64_t max_index = std::numeric_limits<std::int32_t>::max();
  NMT_CHECK(width <= max_index, "rows of {} elements: at most {} are possible", width, max_index);
  const std::int64_t n = rows * width;
  const auto start = [&](auto divisor) {
    launch(each_of_rows_kernel<Body, decltype(divisor)>, blocks_for(cuda, n, each_threads),
           each_threads, 0, cuda, static_cast<typename decltype(divisor)::Index>(n), divisor, body);
  };
  if (n <= max_index)
    start(Divisor(static_cast<Divisor::Index>(width)));
  else
    start(WideDivisor(width));
}

}  // namespace nmt::cuda
