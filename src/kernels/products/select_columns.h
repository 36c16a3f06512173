#pragma once

#include "kernels/handles.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace nmt::kernels {

// Copies columns `ids` of a packed [k,n] matrix to a packed [k, ids.size()] matrix of the same type
// (gemm.h, gemm_bf16.h, gemm_int8.h): an output layer over a part of the vocabulary. Products with
// it give the same bits as the same columns of a product with the whole matrix.

void select_columns(const Cpu&, std::int64_t k, std::int64_t n, std::span<const std::int32_t> ids,
                    const float* packed, float* out);
void select_columns(const Cpu&, std::int64_t k, std::int64_t n, std::span<const std::int32_t> ids,
                    const std::uint16_t* packed, std::uint16_t* out);
void select_columns(const Cpu&, std::int64_t k, std::int64_t n, std::span<const std::int32_t> ids,
                    const std::byte* packed, std::byte* out);

}  // namespace nmt::kernels
