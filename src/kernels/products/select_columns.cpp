#include "kernels/products/select_columns.h"

#include "core/threads/thread_pool.h"
#include "kernels/products/bf16/bf16_products.h"
#include "kernels/products/gemm.h"

#include <algorithm>

namespace nmt::kernels {
namespace {

template <class T>
void select_panels(const Cpu& cpu, std::int64_t k, std::span<const std::int32_t> ids,
                   const T* packed, T* out) {
  const std::int64_t panel = packed_panel(), n = static_cast<std::int64_t>(ids.size());
  cpu.pool->parallel_for(packed_size(1, n), panel, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += panel) {
      const std::int64_t columns = std::min(panel, n - first);
      T* to = out + first * k;
      if (columns < panel) std::fill_n(to, panel * k, T{});
      for (std::int64_t j = 0; j < columns; ++j) {
        const std::int64_t id = ids[first + j];
        const T* from = packed + id / panel * panel * k + id % panel;
        for (std::int64_t i = 0; i < k; ++i) to[i * panel + j] = from[i * panel];
      }
    }
  });
}

}  // namespace

void select_columns(const Cpu& cpu, std::int64_t k, std::int64_t, std::span<const std::int32_t> ids,
                    const float* packed, float* out) {
  select_panels(cpu, k, ids, packed, out);
}

void select_columns(const Cpu& cpu, std::int64_t k, std::int64_t, std::span<const std::int32_t> ids,
                    const std::uint16_t* packed, std::uint16_t* out) {
  if (const Bf16Products* const fast = fast_bf16_products())
    return select_panels(cpu, fast->column_elements(k), ids,
                         reinterpret_cast<const std::uint32_t*>(packed),
                         reinterpret_cast<std::uint32_t*>(out));
  select_panels(cpu, k, ids, packed, out);
}

}  // namespace nmt::kernels
