#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/products/product_operands.h"
#include "cuda/kernels/transpose.h"
#include "kernels/products/product_input.h"

namespace nmt::kernels {

using namespace nmt::cuda;

void gemm(const Cuda& cuda, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
          std::int64_t k, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
          float beta, float* c, std::int64_t ldc) {
  NMT_CHECK(beta == 0.0f || beta == 1.0f, "gemm: beta is {}, expected 0 or 1", beta);
  multiply(cuda, {.m = m,
                  .n = n,
                  .k = k,
                  .a = {.transpose = transpose_a, .f32 = a, .ld = lda},
                  .b = {.transpose = transpose_b, .f32 = b, .ld = ldb},
                  .beta = beta,
                  .c = c,
                  .ldc = ldc});
}

void gemm(const Cuda& cuda, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
          std::int64_t k, const ProductInput& a, std::int64_t lda, const ProductInput& b,
          std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  NMT_CHECK(beta == 0.0f || beta == 1.0f, "gemm: beta is {}, expected 0 or 1", beta);
  multiply(cuda, {.m = m,
                  .n = n,
                  .k = k,
                  .a = operand_of(a, transpose_a, transpose_a ? m : k, lda),
                  .b = operand_of(b, transpose_b, transpose_b ? k : n, ldb),
                  .beta = beta,
                  .c = c,
                  .ldc = ldc});
}

void gemm_rounded(const Cuda& cuda, bool transpose_b, std::int64_t m, std::int64_t n,
                  std::int64_t k, const ProductInput& a, const ProductInput& b, Bfloat16* c,
                  std::int64_t ldc) {
  multiply(cuda, {.m = m,
                  .n = n,
                  .k = k,
                  .a = operand_of(a, false, k, k),
                  .b = operand_of(b, transpose_b, transpose_b ? k : n, transpose_b ? k : n),
                  .c_rounded = c,
                  .ldc = ldc});
}

void gemm_bias(const Cuda& cuda, std::int64_t rows, std::int64_t n, std::int64_t k,
               const ProductInput& x, const ProductInput& w, const float* bias, float* y) {
  multiply(cuda, {.m = rows,
                  .n = n,
                  .k = k,
                  .a = operand_of(x, false, k, k),
                  .b = operand_of(w, false, n, n),
                  .c = y,
                  .ldc = n,
                  .bias = bias});
}

void pack(const Cuda& cuda, bool transpose_b, std::int64_t k, std::int64_t n, const float* b,
          std::int64_t ldb, float* packed) {
  if (packs_bfloat16(cuda)) {
    if (transpose_b)
      copy_matrix(cuda, n, k, b, ldb, as_bfloat16(packed), k);
    else
      transpose(cuda, k, n, b, ldb, as_bfloat16(packed), k);
  } else if (transpose_b) {
    copy_matrix(cuda, n, k, b, ldb, packed, k);
  } else {
    transpose(cuda, k, n, b, ldb, packed, k);
  }
}

void gemm_packed(const Cuda& cuda, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                 std::int64_t lda, const float* packed, bool accumulate, float* c,
                 std::int64_t ldc) {
  multiply(cuda, {.m = m,
                  .n = n,
                  .k = k,
                  .a = {.f32 = a, .ld = lda},
                  .b = packed_operand(cuda, packed, k, 0),
                  .beta = accumulate ? 1.0f : 0.0f,
                  .c = c,
                  .ldc = ldc});
}

void gemm_bias(const Cuda& cuda, std::int64_t rows, std::int64_t n, std::int64_t k, const float* x,
               const float* w, const float* bias, float* y) {
  multiply(cuda, {.m = rows,
                  .n = n,
                  .k = k,
                  .a = {.f32 = x, .ld = k},
                  .b = {.f32 = w, .ld = n},
                  .c = y,
                  .ldc = n,
                  .bias = bias});
}

void gemm_packed_bias(const Cuda& cuda, std::int64_t rows, std::int64_t n, std::int64_t k,
                      const float* x, const float* packed, const float* bias, float* y) {
  multiply(cuda, {.m = rows,
                  .n = n,
                  .k = k,
                  .a = {.f32 = x, .ld = k},
                  .b = packed_operand(cuda, packed, k, 0),
                  .c = y,
                  .ldc = n,
                  .bias = bias});
}

void gemm_packed(const Cuda& cuda, std::int64_t m, std::int64_t n, std::int64_t k,
                 const ProductInput& a, const float* packed, const float* bias, float* c) {
  multiply(cuda, {.m = m,
                  .n = n,
                  .k = k,
                  .a = operand_of(a, false, k, k),
                  .b = packed_operand(cuda, packed, k, 0),
                  .c = c,
                  .ldc = n,
                  .bias = bias});
}

void gemm_packed_of_each(const Cuda& cuda, std::int64_t count, std::int64_t m, std::int64_t n,
                         std::int64_t k, const ProductInput& a, const float* packed,
                         std::int64_t stride, float* c) {
  // A stride counts the numbers of the packed type.
  multiply(cuda, {.m = m,
                  .n = n,
                  .k = k,
                  .a = operand_of(a, false, k, k),
                  .b = packed_operand(cuda, packed, k, packs_bfloat16(cuda) ? 2 * stride : stride),
                  .c = c,
                  .ldc = n,
                  .c_stride = m * n,
                  .count = count});
}

void gather_packed(const Cuda& cuda, std::int64_t rows, std::int64_t k, const std::int32_t* ids,
                   const float* packed, float* out) {
  if (packs_bfloat16(cuda)) {
    const Bfloat16* const from = as_bfloat16(packed);
    each_of_rows(cuda, rows, k, [=] __device__(std::int64_t row, std::int32_t column) {
      out[row * k + column] = from_bf16(from[ids[row] * k + column]);
    });
  } else {
    each_of_rows(cuda, rows, k, [=] __device__(std::int64_t row, std::int32_t column) {
      out[row * k + column] = packed[ids[row] * k + column];
    });
  }
}

void gather_packed_rounded(const Cuda& cuda, std::int64_t rows, std::int64_t k,
                           const std::int32_t* ids, const float* packed, float* out,
                           Bfloat16* rounded) {
  NMT_CHECK(packs_bfloat16(cuda), "rounded rows of a matrix that is packed in float32");
  const Bfloat16* const from = as_bfloat16(packed);
  each_of_rows(cuda, rows, k, [=] __device__(std::int64_t row, std::int32_t column) {
    const std::int64_t i = row * k + column;
    rounded[i] = from[ids[row] * k + column];
    out[i] = from_bf16(rounded[i]);
  });
}

}  // namespace nmt::kernels
