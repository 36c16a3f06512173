#pragma once

#include "config/precision.h"
#include "kernels/handles.h"
#include "kernels/products/bfloat16.h"

#include <cstdint>

namespace nmt::cuda {

using kernels::Bfloat16;

/// An input of a product: op(X) [rows,columns], stored as [rows,columns], or [columns,rows] when
/// transpose; float32 or bfloat16. The stored columns may be in planes, equal parts that are
/// `plane` elements apart.
struct Operand {
  bool transpose = false;
  const float* f32 = nullptr;
  const Bfloat16* bf16 = nullptr;
  std::int64_t ld = 0;
  std::int64_t stride = 0;  ///< elements from one of `count` products to the next
  std::int64_t planes = 1, plane = 0;
};

/// C[m,n] = op(A) op(B) + beta C, row-major, op(A) [m,k] and op(B) [k,n], for `count` products.
/// Sums are float32, and so is C unless c_rounded is set; beta 0 does not read C, whose columns may
/// be in planes too.
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  Operand a, b;
  float beta = 0;
  float* c = nullptr;
  /// C rounded, instead of `c`: beta 0, no planes and no bias, inputs in bfloat16.
  Bfloat16* c_rounded = nullptr;
  std::int64_t ldc = 0, c_stride = 0, c_planes = 1, c_plane = 0;
  std::int64_t count = 1;
  /// [n], added to every row; only for one product with beta 0 and rows without gaps.
  const float* bias = nullptr;
};

/// The products of the backend. Where the device's precision is bfloat16, float32 inputs are
/// rounded first. Planes are copied side by side, so that one library call computes the product.
void multiply(const Cuda& cuda, const Product& product);

/// Products without planes and with inputs of one type, without the bias: cuBLAS (blas.cpp), or the
/// CPU's products under the emulator (tests/emulator/blas.cpp). `precision` selects float32 or tf32
/// where the inputs are float32.
void library_product(const Cuda& cuda, const Product& product, Precision precision);
/// The same with the bias, added by the product's kernel: cuBLASLt (blas_lt.cpp). False, and
/// nothing is computed, where it has no kernel for the product.
bool library_product_with_bias(const Cuda& cuda, const Product& product, Precision precision);

}  // namespace nmt::cuda
