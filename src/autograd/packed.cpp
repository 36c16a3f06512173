#include "packed.h"

#include "nmt/kernels/gemm.h"
#include "nmt/kernels/gemm_int8.h"

namespace nmt::ops {
namespace {

const std::byte* int8_of(const Tensor& packed, std::int64_t first) {
  return reinterpret_cast<const std::byte*>(packed.data<std::int8_t>() + first);
}

}  // namespace

std::int64_t packed_elements(Dtype dtype, std::int64_t k, std::int64_t n) {
  return dtype == Dtype::i8 ? kernels::packed_int8_size(k, n) : kernels::packed_size(k, n);
}

void pack_weight(const Context& context, bool transpose, std::int64_t k, std::int64_t n, const float* b, std::int64_t ldb, const Tensor& packed,
                 std::int64_t first) {
  if (packed.dtype() == Dtype::i8) {
    NMT_CHECK(context.device.kind == DeviceKind::cpu, "int8 weights are for the CPU");
    return kernels::pack_int8(context.cpu, transpose, k, n, b, ldb, reinterpret_cast<std::byte*>(packed.data<std::int8_t>() + first));
  }
  dispatch(context, [&](const auto& backend) { kernels::pack(backend, transpose, k, n, b, ldb, packed.f32() + first); });
}

kernels::PackedWeight view_packed(const Tensor& packed, std::int64_t first) {
  if (packed.dtype() == Dtype::i8) return int8_of(packed, first);
  return packed.f32() + first;
}

void packed_product(const Context& context, std::int64_t rows, std::int64_t n, std::int64_t k, const float* x, const Tensor& packed, float* y) {
  if (packed.dtype() == Dtype::i8) return kernels::gemm_int8(context.cpu, rows, n, k, x, k, int8_of(packed, 0), false, y, n);
  dispatch(context, [&](const auto& backend) { kernels::gemm_packed(backend, rows, n, k, x, k, packed.f32(), false, y, n); });
}

void packed_columns(const Context& context, std::int64_t rows, std::int64_t k, std::int64_t n, const std::int32_t* ids, const Tensor& packed,
                    float* y) {
  if (packed.dtype() == Dtype::i8) return kernels::gather_int8(context.cpu, rows, k, n, ids, int8_of(packed, 0), y);
  dispatch(context, [&](const auto& backend) { kernels::gather_packed(backend, rows, k, ids, packed.f32(), y); });
}

}  // namespace nmt::ops
