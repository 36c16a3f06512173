#include "kernels/products/separate.h"

#include "core/error.h"
#include "kernels/products/tile.h"

#include <algorithm>
#include <cstring>

namespace nmt::kernels {
namespace {

constexpr int rows_at_once = 4;  // 8 accumulators hide the latency

// c[rows][panel_width] += A B over `depth` steps of k; B is a panel.
template <int rows>
void separate_tile(std::int64_t depth, const float* a, std::int64_t lda, const float* panel,
                   float* c) {
  Vector sum[rows][2];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < 2; ++v) sum[r][v] = load(c + r * panel_width + v * lanes);
  for (std::int64_t k = 0; k < depth; ++k) {
    const Vector right[2] = {load(panel + k * panel_width), load(panel + k * panel_width + lanes)};
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const Vector left = broadcast(a[r * lda + k]);
      for (int v = 0; v < 2; ++v) sum[r][v] += left * right[v];
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < 2; ++v) store(c + r * panel_width + v * lanes, sum[r][v]);
}

// The same for `rows` rows and `columns` columns of C in place.
void add_product(std::int64_t rows, std::int64_t columns, std::int64_t depth, const float* a,
                 std::int64_t lda, const float* panel, bool accumulate, float* c,
                 std::int64_t ldc) {
  constexpr decltype(&separate_tile<1>) tiles[] = {separate_tile<1>, separate_tile<2>,
                                                   separate_tile<3>, separate_tile<4>};
  const std::size_t bytes = static_cast<std::size_t>(columns) * sizeof(float);
  for (std::int64_t r = 0; r < rows; r += rows_at_once) {
    const std::int64_t count = std::min<std::int64_t>(rows_at_once, rows - r);
    alignas(64) float block[rows_at_once * panel_width] = {};
    for (std::int64_t i = 0; accumulate && i < count; ++i)
      std::memcpy(block + i * panel_width, c + (r + i) * ldc, bytes);
    tiles[count - 1](depth, a + r * lda, lda, panel, block);
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(c + (r + i) * ldc, block + i * panel_width, bytes);
  }
}

}  // namespace

void separate_product_part(const Product& p, std::int64_t m_begin, std::int64_t m_end,
                           std::int64_t n_begin, std::int64_t n_end) {
  NMT_CHECK(!p.transpose_a && !p.packed_bf16 && !p.rounded,
            "products with separate roundings: A is transposed or the inputs are bfloat16");
  for (std::int64_t n = n_begin; n < n_end; n += panel_width)
    for (std::int64_t k = 0; k < p.k; k += stretch) {
      const std::int64_t columns = std::min<std::int64_t>(panel_width, n_end - n),
                         depth = std::min<std::int64_t>(stretch, p.k - k);
      alignas(64) float packed[stretch * panel_width];
      const float* panel = packed;
      if (p.packed)
        panel = p.packed + n * p.k + k * panel_width;
      else
        pack_panels(p.transpose_b, k, k + depth, n, n + columns, p.b, p.ldb, packed, 0);
      add_product(m_end - m_begin, columns, depth, p.a + m_begin * p.lda + k, p.lda, panel,
                  p.accumulate || k > 0, p.c + m_begin * p.ldc + n, p.ldc);
    }
}

}  // namespace nmt::kernels
