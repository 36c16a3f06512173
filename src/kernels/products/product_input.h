#pragma once

// Inputs that are rounded once for several products. On a CUDA device of precision bfloat16 a
// product rounds its float32 inputs first, so the inputs of a layer would be rounded twice, and its
// output's gradient too.

#include "core/error.h"
#include "kernels/products/bfloat16.h"
#include "kernels/products/gemm.h"

namespace nmt::kernels {

/// The distance of the rows of a rounded matrix in elements: a multiple of 16 bytes.
constexpr std::int64_t rounded_stride(std::int64_t columns) {
  return (columns + 7) / 8 * 8;
}

/// A matrix in float32 and perhaps rounded too, by round_matrix().
struct ProductInput {
  const float* f32 = nullptr;
  const Bfloat16* bf16 = nullptr;  ///< rows at rounded_stride(columns); null: not rounded

  ProductInput(const float* matrix, const Bfloat16* rounded = nullptr)
      : f32(matrix), bf16(rounded) {}
};

/// Whether products read matrices that round_matrix() has rounded.
inline bool reads_rounded(const Cpu&) {
  return false;
}
bool reads_rounded(const Cuda& cuda);
/// Rounds x [rows,columns], without gaps, to y, rows * rounded_stride(columns) elements.
inline void round_matrix(const Cpu&, std::int64_t, std::int64_t, const float*, Bfloat16*) {
  NMT_FAIL("products of the CPU read no rounded inputs");
}
void round_matrix(const Cuda& cuda, std::int64_t rows, std::int64_t columns, const float* x,
                  Bfloat16* y);

/// gemm() and gemm_bias() of such inputs: the same bits as without the rounded copies.
inline void gemm(const Cpu& cpu, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
                 std::int64_t k, const ProductInput& a, std::int64_t lda, const ProductInput& b,
                 std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  gemm(cpu, transpose_a, transpose_b, m, n, k, a.f32, lda, b.f32, ldb, beta, c, ldc);
}
void gemm(const Cuda& cuda, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
          std::int64_t k, const ProductInput& a, std::int64_t lda, const ProductInput& b,
          std::int64_t ldb, float beta, float* c, std::int64_t ldc);
/// gemm_packed() and gemm_packed_bias() of such an input.
inline void gemm_packed(const Cpu& cpu, std::int64_t m, std::int64_t n, std::int64_t k,
                        const ProductInput& a, const float* packed, const float* bias, float* c) {
  if (bias)
    gemm_packed_bias(cpu, m, n, k, a.f32, packed, bias, c);
  else
    gemm_packed(cpu, m, n, k, a.f32, k, packed, false, c, n);
}
void gemm_packed(const Cuda& cuda, std::int64_t m, std::int64_t n, std::int64_t k,
                 const ProductInput& a, const float* packed, const float* bias, float* c);
/// `count` products with packed matrices of one shape, `stride` floats apart: c [count,m,n].
inline void gemm_packed_of_each(const Cpu& cpu, std::int64_t count, std::int64_t m, std::int64_t n,
                                std::int64_t k, const ProductInput& a, const float* packed,
                                std::int64_t stride, float* c) {
  for (std::int64_t i = 0; i < count; ++i)
    gemm_packed(cpu, m, n, k, a.f32, k, packed + i * stride, false, c + i * m * n, n);
}
void gemm_packed_of_each(const Cuda& cuda, std::int64_t count, std::int64_t m, std::int64_t n,
                         std::int64_t k, const ProductInput& a, const float* packed,
                         std::int64_t stride, float* c);
/// gather_packed() with the result also rounded, rows without gaps. [CUDA only]
inline void gather_packed_rounded(const Cpu&, std::int64_t, std::int64_t, const std::int32_t*,
                                  const float*, float*, Bfloat16*) {
  NMT_FAIL("products of the CPU read no rounded inputs");
}
void gather_packed_rounded(const Cuda& cuda, std::int64_t rows, std::int64_t k,
                           const std::int32_t* ids, const float* packed, float* out,
                           Bfloat16* rounded);
/// c = a op(b) with the result rounded: a [m,k] and op(b) [k,n] without gaps, c [m,n] in rows at
/// ldc. [CUDA only]
inline void gemm_rounded(const Cpu&, bool, std::int64_t, std::int64_t, std::int64_t,
                         const ProductInput&, const ProductInput&, Bfloat16*, std::int64_t) {
  NMT_FAIL("products of the CPU write no rounded results");
}
void gemm_rounded(const Cuda& cuda, bool transpose_b, std::int64_t m, std::int64_t n,
                  std::int64_t k, const ProductInput& a, const ProductInput& b, Bfloat16* c,
                  std::int64_t ldc);
inline void gemm_bias(const Cpu& cpu, std::int64_t rows, std::int64_t n, std::int64_t k,
                      const ProductInput& x, const ProductInput& w, const float* bias, float* y) {
  gemm_bias(cpu, rows, n, k, x.f32, w.f32, bias, y);
}
void gemm_bias(const Cuda& cuda, std::int64_t rows, std::int64_t n, std::int64_t k,
               const ProductInput& x, const ProductInput& w, const float* bias, float* y);

}  // namespace nmt::kernels
