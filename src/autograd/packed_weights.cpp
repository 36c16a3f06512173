#include "autograd/packed_weights.h"

#include "autograd/ops/linear.h"
#include "kernels/pointwise.h"
#include "kernels/products/bf16/gemm_bf16.h"
#include "kernels/products/gemm.h"
#include "kernels/products/int8/gemm_int8.h"
#include "kernels/products/product_input.h"
#include "kernels/products/select_columns.h"

namespace nmt::ops {
namespace {

std::byte* int8_of(const Tensor& packed, std::int64_t first) {
  return reinterpret_cast<std::byte*>(packed.data<std::int8_t>() + first);
}
std::uint16_t* bf16_of(const Tensor& packed, std::int64_t first) {
  return packed.data<std::uint16_t>() + first;
}

}  // namespace

std::int64_t packed_elements(const Context& context, Dtype dtype, std::int64_t k, std::int64_t n) {
  if (dtype == Dtype::i8) return kernels::packed_int8_size(k, n);
  return dtype == Dtype::bf16 ? kernels::packed_bf16_size(k, n)
                              : kernels::packed_size(context.cpu, k, n);
}

void pack_weight(const Context& context, bool transpose, std::int64_t k, std::int64_t n,
                 const Parameter& weight, std::int64_t column, const Tensor& packed,
                 std::int64_t first) {
  const Tensor& value = weight.value;
  const std::int64_t ld = weight.shape[1];
  NMT_CHECK(packed.dtype() == Dtype::f32 || context.backend->low_precision_weights,
            "weights of type {} are supported on the CPU only", name_of(packed.dtype()));
  NMT_CHECK(value.dtype() == Dtype::f32 || value.dtype() == packed.dtype(),
            "{} has type {} and cannot be packed as {}", weight.name, name_of(value.dtype()),
            name_of(packed.dtype()));
  if (value.dtype() == Dtype::i8)
    return kernels::pack_int8(context.cpu, transpose, k, n, value.data<std::int8_t>() + column, ld,
                              weight.scales.f32() + column, int8_of(packed, first));
  if (value.dtype() == Dtype::bf16)
    return kernels::pack_bf16(context.cpu, transpose, k, n, value.data<std::uint16_t>() + column,
                              ld, bf16_of(packed, first));
  const float* b = value.f32() + column;
  if (packed.dtype() == Dtype::i8)
    return kernels::pack_int8(context.cpu, transpose, k, n, b, ld, int8_of(packed, first));
  if (packed.dtype() == Dtype::bf16)
    return kernels::pack_bf16(context.cpu, transpose, k, n, b, ld, bf16_of(packed, first));
  dispatch(context, [&](const auto& backend) {
    kernels::pack(backend, transpose, k, n, b, ld, packed.f32() + first);
  });
}

kernels::PackedWeight view_packed(const Tensor& packed, std::int64_t first) {
  if (packed.dtype() == Dtype::i8) return static_cast<const std::byte*>(int8_of(packed, first));
  if (packed.dtype() == Dtype::bf16)
    return static_cast<const std::uint16_t*>(bf16_of(packed, first));
  return packed.f32() + first;
}

Tensor packed_by_rows(const Context& context, std::int64_t k, std::int64_t n,
                      const Tensor& packed) {
  const std::int64_t bytes = packed.dtype() == Dtype::i8 ? kernels::int8_rows_size(k, n) : 0;
  if (bytes == 0) return {};
  Tensor rows = context.empty({bytes}, Dtype::i8);
  kernels::copy_int8_rows(context.cpu, k, n, int8_of(packed, 0), int8_of(rows, 0));
  return rows;
}

void packed_product(const Context& context, std::int64_t rows, std::int64_t n, std::int64_t k,
                    const kernels::ProductInput& x, const Tensor& packed, const float* bias,
                    float* y, const Tensor* by_rows) {
  if (packed.dtype() == Dtype::f32) {
    dispatch(context, [&](const auto& backend) {
      kernels::gemm_packed(backend, rows, n, k, x, packed.f32(), bias, y);
    });
    return;
  }
  if (packed.dtype() == Dtype::i8)
    return kernels::gemm_int8(context.cpu, rows, n, k, x.f32, k, int8_of(packed, 0), false, y, n,
                              bias, by_rows && *by_rows ? int8_of(*by_rows, 0) : nullptr);
  kernels::gemm_bf16(context.cpu, rows, n, k, x.f32, k, bf16_of(packed, 0), false, y, n);
  if (bias) kernels::add_bias(context.cpu, rows, n, y, bias, y);
}

void packed_columns(const Context& context, std::int64_t rows, std::int64_t k, std::int64_t n,
                    const std::int32_t* ids, const Tensor& packed, float* y,
                    kernels::Bfloat16* rounded) {
  if (packed.dtype() == Dtype::i8)
    return kernels::gather_int8(context.cpu, rows, k, n, ids, int8_of(packed, 0), y);
  if (packed.dtype() == Dtype::bf16)
    return kernels::gather_bf16(context.cpu, rows, k, ids, bf16_of(packed, 0), y);
  dispatch(context, [&](const auto& backend) {
    if (rounded)
      kernels::gather_packed_rounded(backend, rows, k, ids, packed.f32(), y, rounded);
    else
      kernels::gather_packed(backend, rows, k, ids, packed.f32(), y);
  });
}

Tensor select_packed_columns(const Context& context, std::int64_t k, std::int64_t n,
                             std::span<const std::int32_t> ids, const Tensor& packed) {
  const Dtype dtype = packed.dtype();
  Tensor out = context.empty(
      {packed_elements(context, dtype, k, static_cast<std::int64_t>(ids.size()))}, dtype);
  if (dtype == Dtype::i8)
    kernels::select_columns(context.cpu, k, n, ids, int8_of(packed, 0), int8_of(out, 0));
  else if (dtype == Dtype::bf16)
    kernels::select_columns(context.cpu, k, n, ids, bf16_of(packed, 0), bf16_of(out, 0));
  else
    kernels::select_columns(context.cpu, k, n, ids, packed.f32(), out.f32());
  return out;
}

}  // namespace nmt::ops
