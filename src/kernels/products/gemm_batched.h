#pragma once

#include "kernels/handles.h"

#include <cstdint>

namespace nmt::kernels {

/// Strides of a batch of products: product (g, p) of `groups` x `planes` finds each of A, B and C
/// at g * group + p * plane elements from its start. c_plane 0 with several planes sums them: C(g)
/// += sum over p of A(g,p) B(g,p).
struct GemmBatch {
  std::int64_t groups = 1, planes = 1;
  std::int64_t a_group = 0, a_plane = 0;
  std::int64_t b_group = 0, b_plane = 0;
  std::int64_t c_group = 0, c_plane = 0;
};

/// A matrix [K*k, P*K*n] whose P planes are block-diagonal, K blocks of [k,n] each (Gao et al.,
/// NAACL 2018, section 2.1). It is stored as [K, k, P*n]: the rows of each group, with its planes
/// side by side. Each of the three products of a linear layer is one batch.
struct BlockDiagonal {
  std::int64_t groups = 1, planes = 1;
  std::int64_t k = 0, n = 0;
  /// Row stride in floats, at least P*n; larger when the planes are part of a wider tensor.
  std::int64_t ld = 0;

  /// X [rows, K*k] W = Y [rows, P*K*n]: products [rows,k] [k,n].
  GemmBatch product() const { return {groups, planes, k, 0, k * ld, n, n, groups * n}; }
  /// dY W^T = dX: products [rows,n] [n,k], op(B) = W transposed, planes summed.
  GemmBatch input_gradient() const { return {groups, planes, n, groups * n, k * ld, n, k, 0}; }
  /// X^T dY = dW: products [k,rows] [rows,n], op(A) = X transposed.
  GemmBatch weight_gradient() const { return {groups, planes, k, 0, n, groups * n, k * ld, n}; }
};

/// C[m,n] = op(A) op(B) + beta C for every product of the batch, as gemm(). An output is one FMA
/// chain, first along k and then along summed planes; its bits depend neither on the number of
/// threads nor on packing.
NMT_KERNEL(gemm_batched, const GemmBatch& batch, bool transpose_a, bool transpose_b, std::int64_t m,
           std::int64_t n, std::int64_t k, const float* a, std::int64_t lda, const float* b,
           std::int64_t ldb, float beta, float* c, std::int64_t ldc);

/// Floats that pack_batched() writes: without ProductMethod::bfloat16x3(), and with these
/// products.
std::int64_t packed_batched_size(const GemmBatch& batch, std::int64_t k, std::int64_t n);
std::int64_t packed_batched_size(const Cpu& cpu, const GemmBatch& batch, std::int64_t k,
                                 std::int64_t n);
/// Packs every op(B) [k,n] of the batch with pack(), group by group.
NMT_KERNEL(pack_batched, const GemmBatch& batch, bool transpose_b, std::int64_t k, std::int64_t n,
           const float* b, std::int64_t ldb, float* packed);
/// C[m,n] = A B (+ C when accumulate) for every product of the batch. A row depends neither on the
/// other rows nor on the number of threads.
NMT_KERNEL(gemm_packed_batched, const GemmBatch& batch, std::int64_t m, std::int64_t n,
           std::int64_t k, const float* a, std::int64_t lda, const float* packed, bool accumulate,
           float* c, std::int64_t ldc);
/// gemm_packed_batched() on the calling thread. [CPU only: a building block]
void gemm_packed_batched_rows(const Cpu&, const GemmBatch& batch, std::int64_t m, std::int64_t n,
                              std::int64_t k, const float* a, std::int64_t lda, const float* packed,
                              bool accumulate, float* c, std::int64_t ldc);

}  // namespace nmt::kernels
