#include "kernels/products/bf16/gemm_bf16.h"

#include "core/error.h"
#include "core/threads/thread_pool.h"
#include "kernels/products/bf16/bf16_products.h"
#include "kernels/products/gemm.h"
#include "kernels/products/product.h"

#include <algorithm>
#include <cmath>
#include <vector>

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

// Where the elements of a packed column are.
struct Layout {
  const Bf16Products* fast = fast_bf16_products();
  std::int64_t panel = packed_panel();

  std::int64_t column_size(std::int64_t k) const { return fast ? 2 * fast->column_elements(k) : k; }
  std::int64_t first(std::int64_t column, std::int64_t k) const {
    return column / panel * panel * column_size(k) + column % panel * (fast ? 2 : 1);
  }
  std::int64_t offset(std::int64_t i) const { return fast ? i / 2 * 2 * panel + i % 2 : i * panel; }
};

template <class T>
void pack_columns(const Cpu& cpu, bool transpose_b, std::int64_t k, std::int64_t n, const T* b,
                  std::int64_t ldb, std::uint16_t* packed) {
  const Layout layout;
  const std::int64_t panel = layout.panel;
  const auto weight = [=](std::int64_t i, std::int64_t j) {
    return finite_bf16(transpose_b ? b[j * ldb + i] : b[i * ldb + j]);
  };
  cpu.pool->parallel_for(packed_size(1, n), panel, [=](std::int64_t begin, std::int64_t end) {
    std::vector<float> rows(static_cast<std::size_t>(layout.fast ? k * panel : 0));
    for (std::int64_t first = begin; first < end; first += panel) {
      const std::int64_t columns = std::min(panel, n - first);
      std::uint16_t* const to = packed + layout.first(first, k);
      if (layout.fast) {
        for (std::int64_t j = 0; j < columns; ++j)
          for (std::int64_t i = 0; i < k; ++i)
            rows[static_cast<std::size_t>(i * panel + j)] = from_bf16(weight(i, first + j));
        layout.fast->pack(false, k, 0, columns, rows.data(), panel, reinterpret_cast<float*>(to));
        continue;
      }
      for (std::int64_t j = 0; j < panel; ++j)
        for (std::int64_t i = 0; i < k; ++i)
          to[i * panel + j] = j < columns ? weight(i, first + j) : std::uint16_t{0};
    }
  });
}

Product product_of(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda,
                   const std::uint16_t* packed, bool accumulate, float* c, std::int64_t ldc) {
  Product product = packed_product(m, n, k, a, lda, packed, accumulate, c, ldc);
  if (const Bf16Products* const fast = fast_bf16_products()) {
    product.packed = reinterpret_cast<const float*>(packed);
    product.packed_bf16 = nullptr;
    product.rounded = fast;
  }
  return product;
}

}  // namespace

std::int64_t packed_bf16_size(std::int64_t k, std::int64_t n) {
  return packed_size(1, n) * Layout().column_size(k);
}

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
  if (m > 0 && n > 0) run_product(cpu, product_of(m, n, k, a, lda, packed, accumulate, c, ldc));
}

void gemm_bf16_rows(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                    std::int64_t lda, const std::uint16_t* packed, bool accumulate, float* c,
                    std::int64_t ldc) {
  product_part(product_of(m, n, k, a, lda, packed, accumulate, c, ldc), 0, m, 0, n);
}

void gather_bf16(const Cpu& cpu, std::int64_t rows, std::int64_t k, const std::int32_t* ids,
                 const std::uint16_t* packed, float* out) {
  const Layout layout;
  cpu.pool->parallel_for(rows, 16, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::uint16_t* const column = packed + layout.first(ids[r], k);
      for (std::int64_t i = 0; i < k; ++i) out[r * k + i] = from_bf16(column[layout.offset(i)]);
    }
  });
}

}  // namespace nmt::kernels
