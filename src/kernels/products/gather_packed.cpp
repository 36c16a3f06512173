#include "core/threads/thread_pool.h"
#include "kernels/products/gemm.h"

namespace nmt::kernels {

void gather_packed(const Cpu& cpu, std::int64_t rows, std::int64_t k, const std::int32_t* ids,
                   const float* packed, float* out) {
  cpu.pool->parallel_for(rows, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) unpack_column(k, ids[r], packed, out + r * k);
  });
}

}  // namespace nmt::kernels
