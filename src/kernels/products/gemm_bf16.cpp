#include "kernels/products/gemm_bf16.h"

#include "core/error.h"
#include "core/thread_pool.h"
#include "kernels/products/gemm.h"
#include "kernels/products/product.h"

#include <cmath>

namespace nmt::kernels {
namespace {

std::uint16_t finite_bf16(float weight) {
  const std::uint16_t half = to_bf16(weight);
  if (!std::isfinite(from_bf16(half)))
    fail(ExitStatus::data, "a weight is {}: expected a finite value in the range of bfloat16",
         weight);
  return half;
}
std::uint16_t finite_bf16(std::uint16_t weight) {
  return weight;
}

template <class T>
void pack_columns(const Cpu& cpu, bool transpose_b, std::int64_t k, std::int64_t n, const T* b,
                  std::int64_t ldb, std::uint16_t* packed) {
  const std::int64_t panel = packed_panel();
  cpu.pool->parallel_for(packed_size(1, n), panel, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = begin; j < end; ++j) {
      std::uint16_t* column = packed + j / panel * panel * k + j % panel;
      for (std::int64_t i = 0; i < k; ++i)
        column[i * panel] =
            j >= n ? std::uint16_t{0} : finite_bf16(transpose_b ? b[j * ldb + i] : b[i * ldb + j]);
    }
  });
}

}  // namespace

void round_bf16(const float* from, std::int64_t n, std::uint16_t* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = finite_bf16(from[i]);
}

void pack_bf16(const Cpu& cpu, bool transpose_b, std::int64_t k, std::int64_t n, const float* b,
               std::int64_t ldb, std::uint16_t* packed) {
  pack_columns(cpu, transpose_b, k, n, b, ldb, packed);
}

void pack_bf16(const Cpu& cpu, bool transpose_b, std::int64_t k, std::int64_t n,
               const std::uint16_t* b, std::int64_t ldb, std::uint16_t* packed) {
  pack_columns(cpu, transpose_b, k, n, b, ldb, packed);
}

void gemm_bf16(const Cpu& cpu, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
               std::int64_t lda, const std::uint16_t* packed, bool accumulate, float* c,
               std::int64_t ldc) {
  if (m > 0 && n > 0) run_product(cpu, packed_product(m, n, k, a, lda, packed, accumulate, c, ldc));
}

void gemm_bf16_rows(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                    std::int64_t lda, const std::uint16_t* packed, bool accumulate, float* c,
                    std::int64_t ldc) {
  product_part(packed_product(m, n, k, a, lda, packed, accumulate, c, ldc), 0, m, 0, n);
}

void gather_bf16(const Cpu& cpu, std::int64_t rows, std::int64_t k, const std::int32_t* ids,
                 const std::uint16_t* packed, float* out) {
  const std::int64_t panel = packed_panel();
  cpu.pool->parallel_for(rows, 16, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::uint16_t* column = packed + ids[r] / panel * panel * k + ids[r] % panel;
      for (std::int64_t i = 0; i < k; ++i) out[r * k + i] = from_bf16(column[i * panel]);
    }
  });
}

}  // namespace nmt::kernels
