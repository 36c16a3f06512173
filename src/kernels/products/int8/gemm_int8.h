#pragma once

#include "kernels/handles.h"

#include <cstddef>
#include <cstdint>

namespace nmt::kernels {

// GEMM with int8 weights, for decoding: a quarter of the bytes of float32 and four times its
// multiply-adds per instruction.
//   w[k,n] ~ scale[n] * q[k,n]   q in [-127,127], scale[n] = max |w[:,n]| / 127: one scale per
//                                column, computed when packing
//   a[m,k] ~ step[m] * p[m,k]    p in [-127,127], step[m] = max |a[m,:]| / 127: one step per row,
//                                computed in every product
//   c[m,n] = step[m] * scale[n] * sum_k p[m,k] q[k,n]
// Symmetric linear quantization (Wu et al., arXiv:1609.08144, section 6, and Wu et al.,
// arXiv:2004.09602, section 3). The sum is exact in int32, so a row's result depends neither on the
// other rows, nor on the number of threads, nor on the processor.

/// Largest inner dimension whose sums are exact in int32.
constexpr std::int64_t max_int8_depth = 65536;

/// The instructions of int8 products in this process: "AMX and VNNI", "VNNI", "SDOT" (Arm) or
/// "vectors".
const char* int8_instructions();

/// Bytes that pack_int8() writes for a [k,n] matrix: n rounded up to 16 columns, k to 4 rows, and
/// one scale per column.
std::int64_t packed_int8_size(std::int64_t k, std::int64_t n);
/// Quantizes and packs op(B) [k,n]; B is stored [k,n], or [n,k] when transpose_b. `packed` is
/// aligned to 64 bytes. Errors: (failed) k exceeds max_int8_depth; (data) a weight is not finite.
void pack_int8(const Cpu&, bool transpose_b, std::int64_t k, std::int64_t n, const float* b,
               std::int64_t ldb, std::byte* packed);
/// Quantizes without packing: q is contiguous in the layout of b; scales [n].
void round_int8(const Cpu&, bool transpose_b, std::int64_t k, std::int64_t n, const float* b,
                std::int64_t ldb, std::int8_t* q, float* scales);
/// Packs weights already quantized by round_int8(); q is stored as B above.
void pack_int8(const Cpu&, bool transpose_b, std::int64_t k, std::int64_t n, const std::int8_t* q,
               std::int64_t ldq, const float* scales, std::byte* packed);
/// The same on the calling thread. [CPU only: a building block]
void pack_int8_rows(bool transpose_b, std::int64_t k, std::int64_t n, const std::int8_t* q,
                    std::int64_t ldq, const float* scales, std::byte* packed);
/// Bytes of a copy of a packed [k,n] matrix by rows, for rows of A of which many values are zero,
/// as after ReLU; 0 where this processor does not use one.
std::int64_t int8_rows_size(std::int64_t k, std::int64_t n);
/// Writes the copy: [k][n rounded up to 64], aligned to 64 bytes.
void copy_int8_rows(const Cpu&, std::int64_t k, std::int64_t n, const std::byte* packed,
                    std::byte* rows);
/// C[M,N] = A B, + C when accumulate, or + bias [N] on every row. A row of A with a non-finite
/// value gives NaN. With a copy of B by rows, a single row of A reads only the rows of B that meet
/// no zero; the result is the same.
void gemm_int8(const Cpu&, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
               std::int64_t lda, const std::byte* packed, bool accumulate, float* c,
               std::int64_t ldc, const float* bias = nullptr, const std::byte* by_rows = nullptr);
/// gemm_int8() on the calling thread. [CPU only: a building block]
void gemm_int8_rows(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                    std::int64_t lda, const std::byte* packed, bool accumulate, float* c,
                    std::int64_t ldc);
/// Writes the dequantized column `column` of a packed [k,n] matrix to out[k].
void unpack_int8_column(std::int64_t k, std::int64_t n, std::int64_t column,
                        const std::byte* packed, float* out);

/// out[r,:] = the dequantized column ids[r] of the packed [k,n] matrix; out is [rows,k].
void gather_int8(const Cpu&, std::int64_t rows, std::int64_t k, std::int64_t n,
                 const std::int32_t* ids, const std::byte* packed, float* out);

}  // namespace nmt::kernels
