#pragma once

#include "nmt/kernels/backend.h"

#include <cstdint>

namespace nmt::cuda {

/// C[m,n] = op(A) op(B) + beta C, row-major, for `count` products that stand a_stride, b_stride and c_stride elements
/// apart. op(A) is [m,k]: A is stored [m,k], or [k,m] when transpose_a. Likewise B, [k,n] or [n,k]. beta 0 does not
/// read C.
struct Product {
  bool transpose_a = false, transpose_b = false;
  std::int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  std::int64_t lda = 0;
  const float* b = nullptr;
  std::int64_t ldb = 0;
  float beta = 0;
  float* c = nullptr;
  std::int64_t ldc = 0;
  std::int64_t count = 1, a_stride = 0, b_stride = 0, c_stride = 0;
};

/// The products of the backend: cuBLAS (blas.cpp), or the CPU's under the emulator (tests/emulator/blas.cpp).
void multiply(const Cuda& cuda, const Product& product);

}  // namespace nmt::cuda
