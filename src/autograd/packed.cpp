#include "packed.h"

#include "nmt/kernels/gemm.h"
#include "nmt/kernels/gemm_bf16.h"
#include "nmt/kernels/gemm_int8.h"

namespace nmt::ops {
namespace {

std::byte* int8_of(const Tensor& packed, std::int64_t first) { return reinterpret_cast<std::byte*>(packed.data<std::int8_t>() + first); }
std::uint16_t* bf16_of(const Tensor& packed, std::int64_t first) { return packed.data<std::uint16_t>() + first; }

}  // namespace

std::int64_t packed_elements(Dtype dtype, std::int64_t k, std::int64_t n) {
  return dtype == Dtype::i8 ? kernels::packed_int8_size(k, n) : kernels::packed_size(k, n);
}

void pack_weight(const Context& context, bool transpose, std::int64_t k, std::int64_t n, const float* b, std::int64_t ldb, const Tensor& packed,
                 std::int64_t first) {
  NMT_CHECK(packed.dtype() == Dtype::f32 || context.device.kind == DeviceKind::cpu, "weights in {} are for the CPU", name_of(packed.dtype()));
  if (packed.dtype() == Dtype::i8) return kernels::pack_int8(context.cpu, transpose, k, n, b, ldb, int8_of(packed, first));
  if (packed.dtype() == Dtype::bf16) return kernels::pack_bf16(context.cpu, transpose, k, n, b, ldb, bf16_of(packed, first));
  dispatch(context, [&](const auto& backend) { kernels::pack(backend, transpose, k, n, b, ldb, packed.f32() + first); });
}

kernels::PackedWeight view_packed(const Tensor& packed, std::int64_t first) {
  if (packed.dtype() == Dtype::i8) return static_cast<const std::byte*>(int8_of(packed, first));
  if (packed.dtype() == Dtype::bf16) return static_cast<const std::uint16_t*>(bf16_of(packed, first));
  return packed.f32() + first;
}

void packed_product(const Context& context, std::int64_t rows, std::int64_t n, std::int64_t k, const float* x, const Tensor& packed, float* y) {
  if (packed.dtype() == Dtype::i8) return kernels::gemm_int8(context.cpu, rows, n, k, x, k, int8_of(packed, 0), false, y, n);
  if (packed.dtype() == Dtype::bf16) return kernels::gemm_bf16(context.cpu, rows, n, k, x, k, bf16_of(packed, 0), false, y, n);
  dispatch(context, [&](const auto& backend) { kernels::gemm_packed(backend, rows, n, k, x, k, packed.f32(), false, y, n); });
}

void packed_columns(const Context& context, std::int64_t rows, std::int64_t k, std::int64_t n, const std::int32_t* ids, const Tensor& packed,
                    float* y) {
  if (packed.dtype() == Dtype::i8) return kernels::gather_int8(context.cpu, rows, k, n, ids, int8_of(packed, 0), y);
  if (packed.dtype() == Dtype::bf16) return kernels::gather_bf16(context.cpu, rows, k, ids, bf16_of(packed, 0), y);
  dispatch(context, [&](const auto& backend) { kernels::gather_packed(backend, rows, k, ids, packed.f32(), y); });
}

}  // namespace nmt::ops
