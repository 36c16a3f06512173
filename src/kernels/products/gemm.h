#pragma once

#include "kernels/backend.h"

#include <cstdint>

namespace nmt::kernels {

// Matrix products, row-major. Leading dimensions are in elements.

/// C[M,N] = op(A) op(B) + beta C, beta 0 or 1, for training. On the CPU: by Cpu::products where it
/// is the faster one (docs/design/products.md), else by the same tiles as below, B packed block by
/// block on the way; these results do not depend on the threads either. op(A) is [M,K]: A is stored
/// [M,K], or [K,M] when transpose_a. Likewise B, [K,N] or [N,K]. beta 0 does not read C.
NMT_KERNEL(gemm, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
           const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
           std::int64_t ldc);

/// Y[rows,n] = X[rows,k] W[k,n] + bias[n] to every row, without gaps between rows. On a GPU the
/// product adds the bias itself where its library can.
NMT_KERNEL(gemm_bias, std::int64_t rows, std::int64_t n, std::int64_t k, const float* x,
           const float* w, const float* bias, float* y);

// Packed products, for weights that serve many products: B is laid out once in panels of
// packed_panel() columns. On CUDA a packed matrix is op(B) transposed, [n,k] row-major. Every
// output is one chain of fused multiply-adds along k ascending, so a row's result depends neither
// on the number of rows, nor on its place among them, nor on the threads: what makes decoding
// batch-invariant (on the CPU).

/// Columns of a panel (depends on the instruction set).
std::int64_t packed_panel();
/// Floats that pack() writes for a [k,n] matrix: n rounded up to whole panels, times k.
std::int64_t packed_size(std::int64_t k, std::int64_t n);
/// Packs op(B) [k,n]; B is stored [k,n], or [n,k] when transpose_b.
NMT_KERNEL(pack, bool transpose_b, std::int64_t k, std::int64_t n, const float* b, std::int64_t ldb,
           float* packed);
/// C[M,N] = A B (+ C when accumulate; the chain then starts from C).
NMT_KERNEL(gemm_packed, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
           std::int64_t lda, const float* packed, bool accumulate, float* c, std::int64_t ldc);
/// Y[rows,n] = X[rows,k] W + bias[n] to every row, without gaps between rows.
NMT_KERNEL(gemm_packed_bias, std::int64_t rows, std::int64_t n, std::int64_t k, const float* x,
           const float* packed, const float* bias, float* y);
/// gemm_packed() on the calling thread alone, for loops that already run on every worker. [CPU
/// only: a building block]
void gemm_packed_rows(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                      std::int64_t lda, const float* packed, bool accumulate, float* c,
                      std::int64_t ldc);
/// Reads column `column` of the packed [k,n] matrix into out[k]: a tied embedding's row, without a
/// second copy of the table.
void unpack_column(std::int64_t k, std::int64_t column, const float* packed, float* out);
/// out[r,:] = column ids[r] of the packed [k,n] matrix, k wide.
NMT_KERNEL(gather_packed, std::int64_t rows, std::int64_t k, const std::int32_t* ids,
           const float* packed, float* out);

}  // namespace nmt::kernels
