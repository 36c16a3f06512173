#pragma once

// Weights packed for products, as float32, bfloat16 or int8: what a model frozen for inference
// keeps.

#include "autograd/parameter.h"
#include "kernels/products/packed.h"

#include <cstdint>

namespace nmt::ops {

/// Number of elements that pack_weight() writes.
std::int64_t packed_elements(const Context& context, Dtype dtype, std::int64_t k, std::int64_t n);
/// Packs op(B) [k,n] into packed[first..] in the dtype of `packed`. B consists of the columns of
/// the weight's value from `column` on, or is its transpose. i8 and bf16 values can only be packed
/// without conversion.
void pack_weight(const Context& context, bool transpose, std::int64_t k, std::int64_t n,
                 const Parameter& weight, std::int64_t column, const Tensor& packed,
                 std::int64_t first = 0);
/// The packed matrix that starts at element `first`.
kernels::PackedWeight view_packed(const Tensor& packed, std::int64_t first = 0);
/// The packed [k,n] matrix by rows (kernels::copy_int8_rows()); empty where there is no use for it.
Tensor packed_by_rows(const Context& context, std::int64_t k, std::int64_t n, const Tensor& packed);
/// y [rows,n] = x [rows,k] W + bias [n]; bias and by_rows, packed_by_rows() of W, may be null.
void packed_product(const Context& context, std::int64_t rows, std::int64_t n, std::int64_t k,
                    const kernels::ProductInput& x, const Tensor& packed, const float* bias,
                    float* y, const Tensor* by_rows = nullptr);
/// y[r,:] = column ids[r] of the packed [k,n] matrix; `rounded`: the same for products, or null.
void packed_columns(const Context& context, std::int64_t rows, std::int64_t k, std::int64_t n,
                    const std::int32_t* ids, const Tensor& packed, float* y,
                    kernels::Bfloat16* rounded = nullptr);

}  // namespace nmt::ops
