#pragma once

#include "kernels/handles.h"

#include <cstdint>

namespace nmt::kernels {

// GEMM, row-major. Leading dimensions are in elements.

/// C[M,N] = op(A) op(B) + beta C for training; beta is 0 or 1, and beta 0 does not read C. op(A) is
/// [M,K]: A is stored [M,K], or [K,M] when transpose_a. op(B) is [K,N]: B is stored [K,N], or [N,K]
/// when transpose_b. The CPU uses Cpu::products where it is faster (docs/design/products.md), else
/// the same tiles as below with B packed block by block; results of the latter do not depend on the
/// number of threads. With ProductMethod::bfloat16() or bfloat16x3() the CPU rounds A and B, to
/// one or three numbers, and uses own tiles.
NMT_KERNEL(gemm, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
           const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
           std::int64_t ldc);

/// Y[rows,n] = X[rows,k] W[k,n] + bias[n]; rows are contiguous. On a GPU the bias is fused into the
/// GEMM where cuBLASLt supports it.
NMT_KERNEL(gemm_bias, std::int64_t rows, std::int64_t n, std::int64_t k, const float* x,
           const float* w, const float* bias, float* y);

// Packed GEMM, for weights that are used many times: B is stored once in panels of packed_panel()
// columns. On CUDA a packed matrix is op(B) transposed, [n,k] row-major. Every output is one FMA
// chain along ascending k, so a row's result does not depend on the number of rows, its index or
// the number of threads. This makes decoding on the CPU batch-invariant. With
// ProductMethod::bfloat16() all of this holds for the rounded inputs, and a panel has its own
// layout (pairs.h), which takes at most as much memory. With ProductMethod::bfloat16x3() a panel
// takes 1.5 times as much where k is a multiple of 32.

/// Columns of a panel (depends on the instruction set).
std::int64_t packed_panel();
/// Floats that pack() writes for a [k,n] matrix without ProductMethod::bfloat16x3(): k times n
/// rounded up to whole panels.
std::int64_t packed_size(std::int64_t k, std::int64_t n);
/// Floats that pack() writes with these products.
std::int64_t packed_size(const Cpu& cpu, std::int64_t k, std::int64_t n);
/// Packs op(B) [k,n]; B is stored [k,n], or [n,k] when transpose_b.
NMT_KERNEL(pack, bool transpose_b, std::int64_t k, std::int64_t n, const float* b, std::int64_t ldb,
           float* packed);
/// C[M,N] = A B (+ C when accumulate; the chain then starts from C).
NMT_KERNEL(gemm_packed, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
           std::int64_t lda, const float* packed, bool accumulate, float* c, std::int64_t ldc);
/// Y[rows,n] = X[rows,k] W + bias[n] to every row, without gaps between rows.
NMT_KERNEL(gemm_packed_bias, std::int64_t rows, std::int64_t n, std::int64_t k, const float* x,
           const float* packed, const float* bias, float* y);
/// gemm_packed() on the calling thread, for callers that already run on every thread. [CPU only: a
/// building block]
void gemm_packed_rows(const Cpu&, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                      std::int64_t lda, const float* packed, bool accumulate, float* c,
                      std::int64_t ldc);
/// Copies column `column` of a packed [k,n] matrix to out[k]: a row of a tied embedding, without a
/// second copy of the table.
void unpack_column(std::int64_t k, std::int64_t column, const float* packed, float* out);
/// out[r,:] = column ids[r] of the packed [k,n] matrix; out is [rows,k].
NMT_KERNEL(gather_packed, std::int64_t rows, std::int64_t k, const std::int32_t* ids,
           const float* packed, float* out);

}  // namespace nmt::kernels
