#pragma once

#include "kernels/backend.h"
#include "kernels/products/bfloat16.h"

#include <cstdint>

namespace nmt::kernels {

// Products with weights of sixteen bits, for decoding few sentences at a time: half the bytes,
// which is what such a product waits for. A bfloat16 is the upper half of a float32; a weight is
// rounded to the nearest one when it is packed (of two, to the even one) and widened, which is
// exact, when a product reads it. All sums are those of float32: every output is the one chain of
// fused multiply-adds of gemm.h over the rounded weights, so it depends neither on the other rows
// nor on the threads. Panels are those of gemm.h, packed_size() numbers.

/// to[i] = to_bf16(from[i]). Error (data): a weight that is not finite, or that rounds to infinity.
void round_bf16(const float* from, std::int64_t n, std::uint16_t* to);
/// Rounds and packs op(B) [k,n]; B is stored [k,n], or [n,k] when transpose_b. Errors as
/// round_bf16().
void pack_bf16(const Cpu&, bool transpose_b, std::int64_t k, std::int64_t n, const float* b,
               std::int64_t ldb, std::uint16_t* packed);
/// Packs what was rounded before.
void pack_bf16(const Cpu&, bool transpose_b, std::int64_t k, std::int64_t n, const std::uint16_t* b,
               std::int64_t ldb, std::uint16_t* packed);
/// C[M,N] = A B (+ C when accumulate).
void gemm_bf16(const Cpu&, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
               std::int64_t lda, const std::uint16_t* packed, bool accumulate, float* c,
               std::int64_t ldc);
/// The same on the calling thread alone. [CPU only: a building block]
void gemm_bf16_rows(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                    std::int64_t lda, const std::uint16_t* packed, bool accumulate, float* c,
                    std::int64_t ldc);
/// out[r,:] = column ids[r] of the packed [k,n] matrix, k wide.
void gather_bf16(const Cpu&, std::int64_t rows, std::int64_t k, const std::int32_t* ids,
                 const std::uint16_t* packed, float* out);

}  // namespace nmt::kernels
