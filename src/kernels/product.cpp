#include "product.h"

#include <cstring>

#include "tile.h"

namespace nmt::kernels {
namespace {

// B's block, [stretch][columns], stays in the second-level cache while all rows of A pass over it.
constexpr std::int64_t block_floats = 128 * 1024;

std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

using Tile = void (*)(std::int64_t, const float*, const float*, std::int64_t, bool, float*, std::int64_t);

// Few rows leave too few independent chains to hide the multiply-add's latency: they take several panels at once.
template <int rows>
constexpr int wide = rows == 1   ? 4
                     : rows <= 3 ? 2
                                 : 1;

struct Tiles {
  Tile one, several;
  int panels;
};
template <int rows, bool along_k>
constexpr Tiles tiles_for = {tile<rows, 1, along_k>, tile<rows, wide<rows>, along_k>, wide<rows>};

template <bool along_k>
Tiles tiles(int rows) {
  static_assert(tile_rows <= 14);
  constexpr int top = tile_rows;
  switch (rows) {
#define NMT_ROWS(r) \
  case r:           \
    return tiles_for < (r) <= top ? (r) : 1, along_k >
    NMT_ROWS(1);
    NMT_ROWS(2);
    NMT_ROWS(3);
    NMT_ROWS(4);
    NMT_ROWS(5);
    NMT_ROWS(6);
    NMT_ROWS(7);
    NMT_ROWS(8);
    NMT_ROWS(9);
    NMT_ROWS(10);
    NMT_ROWS(11);
    NMT_ROWS(12);
    NMT_ROWS(13);
    default:
      return tiles_for<top, along_k>;
#undef NMT_ROWS
  }
}

// Copies rows [row, row+rows) x [k0, k0+depth) of op(A) for tile().
void copy_a(const Product& p, std::int64_t row, int rows, std::int64_t k0, std::int64_t depth, float* out) {
  if (!p.transpose_a) {
    for (int r = 0; r < rows; ++r)
      std::memcpy(out + r * copied_stride, p.a + (row + r) * p.lda + k0,
                  static_cast<std::size_t>(depth) * sizeof(float));
  } else if (rows == tile_rows) {
    for (std::int64_t k = 0; k < depth; ++k)
      std::memcpy(out + k * tile_rows, p.a + (k0 + k) * p.lda + row, tile_rows * sizeof(float));
  } else {
    for (std::int64_t k = 0; k < depth; ++k)
      for (int r = 0; r < rows; ++r) out[k * tile_rows + r] = p.a[(k0 + k) * p.lda + row + r];
  }
}

// One row of tiles: all panels of a block of B.
void multiply_rows(int rows, bool along_k, std::int64_t depth, const float* a, const float* b,
                   std::int64_t panel_stride, std::int64_t columns, bool accumulate, float* c, std::int64_t ldc) {
  const Tiles t = along_k ? tiles<true>(rows) : tiles<false>(rows);
  std::int64_t n = 0;
  for (; n + t.panels * panel_width <= columns; n += t.panels * panel_width)
    t.several(depth, a, b + n / panel_width * panel_stride, panel_stride, accumulate, c + n, ldc);
  for (; n + panel_width <= columns; n += panel_width)
    t.one(depth, a, b + n / panel_width * panel_stride, panel_stride, accumulate, c + n, ldc);
  if (n == columns) return;
  // The last panel is not whole: through a buffer, so that nothing past the row's end is touched.
  alignas(64) float edge[tile_rows * panel_width];
  const std::size_t bytes = static_cast<std::size_t>(columns - n) * sizeof(float);
  if (accumulate)
    for (int r = 0; r < rows; ++r) {
      std::memset(edge + r * panel_width, 0, panel_width * sizeof(float));
      std::memcpy(edge + r * panel_width, c + r * ldc + n, bytes);
    }
  t.one(depth, a, b + n / panel_width * panel_stride, panel_stride, accumulate, edge, panel_width);
  for (int r = 0; r < rows; ++r) std::memcpy(c + r * ldc + n, edge + r * panel_width, bytes);
}

}  // namespace

void product_part(const Product& p, std::int64_t m_begin, std::int64_t m_end, std::int64_t n_begin,
                  std::int64_t n_end) {
  if (m_begin >= m_end || n_begin >= n_end) return;
  if (p.k == 0) {
    if (!p.accumulate)
      for (std::int64_t r = m_begin; r < m_end; ++r)
        std::memset(p.c + r * p.ldc + n_begin, 0, static_cast<std::size_t>(n_end - n_begin) * sizeof(float));
    return;
  }
  alignas(64) float a_copy[tile_rows * copied_stride];
  alignas(64) float b_block[block_floats];
  const std::int64_t stretches = (p.k + stretch - 1) / stretch;
  const std::int64_t depth_step = (p.k + stretches - 1) / stretches;
  const std::int64_t columns_step = block_floats / depth_step / panel_width * panel_width;
  const std::int64_t row_tiles = (m_end - m_begin + tile_rows - 1) / tile_rows;
  for (std::int64_t n = n_begin; n < n_end; n += columns_step) {
    const std::int64_t columns = smaller(columns_step, n_end - n);
    for (std::int64_t k = 0; k < p.k; k += depth_step) {
      const std::int64_t depth = smaller(depth_step, p.k - k);
      const float* block = b_block;
      std::int64_t panel_stride = depth * panel_width;
      if (p.packed) {
        block = p.packed + n * p.k + k * panel_width;
        panel_stride = p.k * panel_width;
      } else {
        pack_panels(p.transpose_b, k, k + depth, n, n + columns, p.b, p.ldb, b_block, panel_stride);
      }
      for (std::int64_t t = 0; t < row_tiles; ++t) {
        // Rows are shared evenly: no tile is left with one row.
        const std::int64_t row = m_begin + (m_end - m_begin) * t / row_tiles;
        const int rows = static_cast<int>(m_begin + (m_end - m_begin) * (t + 1) / row_tiles - row);
        copy_a(p, row, rows, k, depth, a_copy);
        multiply_rows(rows, p.transpose_a, depth, a_copy, block, panel_stride, columns, p.accumulate || k > 0,
                      p.c + row * p.ldc + n, p.ldc);
      }
    }
  }
}

void pack_panels(bool transpose_b, std::int64_t k_begin, std::int64_t k_end, std::int64_t n_begin, std::int64_t n_end,
                 const float* b, std::int64_t ldb, float* packed, std::int64_t panel_stride) {
  for (std::int64_t n = n_begin; n < n_end; n += panel_width, packed += panel_stride) {
    const int columns = static_cast<int>(smaller(panel_width, n_end - n));
    if (columns < panel_width) {
      for (std::int64_t k = k_begin; k < k_end; ++k)
        for (int j = 0; j < panel_width; ++j)
          packed[(k - k_begin) * panel_width + j] = j >= columns  ? 0.0f
                                                    : transpose_b ? b[(n + j) * ldb + k]
                                                                  : b[k * ldb + n + j];
    } else if (!transpose_b) {
      for (std::int64_t k = k_begin; k < k_end; ++k)
        std::memcpy(packed + (k - k_begin) * panel_width, b + k * ldb + n, panel_width * sizeof(float));
    } else {
      // A cache line of k at a time, so that each line of B is read once.
      for (std::int64_t k0 = k_begin; k0 < k_end; k0 += 16) {
        const std::int64_t k1 = smaller(k0 + 16, k_end);
        for (std::int64_t k = k0; k < k1; ++k)
          for (int j = 0; j < panel_width; ++j) packed[(k - k_begin) * panel_width + j] = b[(n + j) * ldb + k];
      }
    }
  }
}

Range part_of(std::int64_t n, std::int64_t grain, int index, int parts) {
  const std::int64_t blocks = (n + grain - 1) / grain;
  return {smaller(n, blocks * index / parts * grain), smaller(n, blocks * (index + 1) / parts * grain)};
}

Grid choose_grid(int workers, std::int64_t m, std::int64_t n, bool packed) {
  Grid best;
  double least = 0;
  for (int rows = 1; rows <= workers; ++rows) {
    const int columns = workers / rows;
    const double part_m = static_cast<double>((m + rows - 1) / rows);
    const double part_n =
        static_cast<double>(((n + panel_width - 1) / panel_width + columns - 1) / columns * panel_width);
    // In multiply-adds per k: the outputs, copying A once a block of columns, reading or packing B.
    const double cost = part_m * part_n + part_m * 3 * (1 + part_n / 400) + part_n * (packed ? 4 : 12);
    if (rows == 1 || cost < least) {
      least = cost;
      best = {rows, columns};
    }
  }
  return best;
}

}  // namespace nmt::kernels
