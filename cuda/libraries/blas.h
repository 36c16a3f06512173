#pragma once

#include "config/precision.h"
#include "kernels/backend.h"
#include "kernels/products/bfloat16.h"

#include <cstdint>

namespace nmt::cuda {

using kernels::Bfloat16;

/// A product's input: op(X) [rows,columns], stored [rows,columns], or [columns,rows] when
/// transpose; float32 or bfloat16. What is stored may have its columns in planes, equal parts that
/// stand `plane` elements apart.
struct Operand {
  bool transpose = false;
  const float* f32 = nullptr;
  const Bfloat16* bf16 = nullptr;
  std::int64_t ld = 0;
  std::int64_t stride = 0;  ///< elements from one of `count` products to the next
  std::int64_t planes = 1, plane = 0;
};

/// C[m,n] = op(A) op(B) + beta C, row-major, op(A) [m,k] and op(B) [k,n], for `count` products.
/// Sums and C are float32; beta 0 does not read C, whose columns may stand in planes too.
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  Operand a, b;
  float beta = 0;
  float* c = nullptr;
  std::int64_t ldc = 0, c_stride = 0, c_planes = 1, c_plane = 0;
  std::int64_t count = 1;
  const float* bias =
      nullptr;  ///< [n], added to every row; for one product without beta, its rows without gaps
};

/// The products of the backend. With bfloat16, the device's precision, inputs in float32 are
/// rounded on the way; planes are put side by side, so that it stays one call.
void multiply(const Cuda& cuda, const Product& product);

/// Inputs of one type, no planes: cuBLAS (blas.cpp), or the CPU's products under the emulator
/// (tests/emulator/blas.cpp). `precision` tells float32 from tf32 where the inputs are float32. It
/// does not know the bias.
void library_product(const Cuda& cuda, const Product& product, Precision precision);
/// The same with the bias, added by the kernel of the product: cuBLASLt (blas_lt.cpp). False where
/// it has none for such a product; nothing is done then.
bool library_product_with_bias(const Cuda& cuda, const Product& product, Precision precision);

}  // namespace nmt::cuda
