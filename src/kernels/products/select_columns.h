#pragma once

#include "kernels/backend.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace nmt::kernels {

// Columns ids[0..) of a packed [k,n] matrix as a packed [k, ids.size()] matrix of the same kind
// (gemm.h, gemm_bf16.h, gemm_int8.h): an output layer over a part of the vocabulary. A product with
// it gives the same bits as those columns of the product with the whole.

void select_columns(const Cpu&, std::int64_t k, std::int64_t n, std::span<const std::int32_t> ids,
                    const float* packed, float* out);
void select_columns(const Cpu&, std::int64_t k, std::int64_t n, std::span<const std::int32_t> ids,
                    const std::uint16_t* packed, std::uint16_t* out);
void select_columns(const Cpu&, std::int64_t k, std::int64_t n, std::span<const std::int32_t> ids,
                    const std::byte* packed, std::byte* out);

}  // namespace nmt::kernels
