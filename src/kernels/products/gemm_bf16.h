#pragma once

#include "kernels/backend.h"
#include "kernels/products/bfloat16.h"

#include <cstdint>

namespace nmt::kernels {

// GEMM with bfloat16 weights, for decoding small batches, which is bound by memory bandwidth:
// weights take half the bytes. Weights are rounded to nearest even when packed and widened, which
// is exact, when read. Sums are float32: every output is one FMA chain over the rounded weights as
// in gemm.h, so it depends neither on the other rows nor on the number of threads. Panels are those
// of gemm.h; a packed matrix has packed_size() elements.

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
