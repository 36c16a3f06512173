#include "nmt/kernels/gemm_bf16.h"

#include "nmt/core/error.h"
#include "nmt/core/thread_pool.h"
#include "nmt/kernels/gemm.h"

#include <cmath>

#include "product.h"

namespace nmt::kernels {

void pack_bf16(const Cpu& cpu, bool transpose_b, std::int64_t k, std::int64_t n, const float* b, std::int64_t ldb,
               std::uint16_t* packed) {
  const std::int64_t panel = packed_panel();
  cpu.pool->parallel_for(packed_size(1, n), panel, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = begin; j < end; ++j) {
      std::uint16_t* column = packed + j / panel * panel * k + j % panel;
      for (std::int64_t i = 0; i < k; ++i) {
        const float weight = j >= n ? 0.0f : transpose_b ? b[j * ldb + i] : b[i * ldb + j];
        column[i * panel] = to_bf16(weight);
        if (!std::isfinite(from_bf16(column[i * panel])))
          fail(ExitStatus::data, "a weight is {}: it cannot be rounded to bfloat16", weight);
      }
    }
  });
}

void gemm_bf16(const Cpu& cpu, std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda,
               const std::uint16_t* packed, bool accumulate, float* c, std::int64_t ldc) {
  if (m <= 0 || n <= 0) return;
  run_product(cpu, {.m = m,
                    .n = n,
                    .k = k,
                    .a = a,
                    .lda = lda,
                    .packed_bf16 = packed,
                    .accumulate = accumulate,
                    .c = c,
                    .ldc = ldc});
}

void gemm_bf16_rows(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda,
                    const std::uint16_t* packed, bool accumulate, float* c, std::int64_t ldc) {
  product_part(
      {.m = m, .n = n, .k = k, .a = a, .lda = lda, .packed_bf16 = packed, .accumulate = accumulate, .c = c, .ldc = ldc},
      0, m, 0, n);
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
