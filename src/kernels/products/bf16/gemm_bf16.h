#pragma once

#include "kernels/handles.h"
#include "kernels/products/bfloat16.h"

#include <cstdint>

namespace nmt::kernels {

// GEMM with weights in bfloat16, for decoding: they take half the memory of float32. Weights are
// rounded to nearest even when they are packed. Where products of bfloat16 are faster
// (fast_bf16_products() in bf16_products.h), A is rounded too, as in training with
// ProductMethod::bfloat16(), and panels consist of pairs (pairs.h). Elsewhere A is not rounded,
// and the weights of panels as in gemm.h are widened when they are read, which is exact. Sums are
// float32. An output depends neither on the other rows nor on the number of threads.

/// Elements that pack_bf16() writes for a [k,n] matrix.
std::int64_t packed_bf16_size(std::int64_t k, std::int64_t n);
/// to[i] = to_bf16(from[i]). Error (data): a weight that is not finite, or that rounds to infinity.
void round_bf16(const float* from, std::int64_t n, std::uint16_t* to);
/// Rounds and packs op(B) [k,n]; B is stored [k,n], or [n,k] when transpose_b. Errors as
/// round_bf16().
void pack_bf16(const Cpu&, bool transpose_b, std::int64_t k, std::int64_t n, const float* b,
               std::int64_t ldb, std::uint16_t* packed);
/// Packs weights already rounded by round_bf16().
void pack_bf16(const Cpu&, bool transpose_b, std::int64_t k, std::int64_t n, const std::uint16_t* b,
               std::int64_t ldb, std::uint16_t* packed);
/// C[M,N] = A B (+ C when accumulate).
void gemm_bf16(const Cpu&, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
               std::int64_t lda, const std::uint16_t* packed, bool accumulate, float* c,
               std::int64_t ldc);
/// gemm_bf16() on the calling thread. [CPU only: a building block]
void gemm_bf16_rows(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                    std::int64_t lda, const std::uint16_t* packed, bool accumulate, float* c,
                    std::int64_t ldc);
/// out[r,:] = column ids[r] of the packed [k,n] matrix; out is [rows,k].
void gather_bf16(const Cpu&, std::int64_t rows, std::int64_t k, const std::int32_t* ids,
                 const std::uint16_t* packed, float* out);

}  // namespace nmt::kernels
