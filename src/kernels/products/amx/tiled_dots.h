#pragma once

#include "kernels/products/amx/blocks.h"
#include "kernels/products/int8/part.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

// The int8 product in tiles: a tile of A is up to 16 rows of 64 activations, a tile of B 16 rows of
// a panel. Sums are integers, so they are those of every other instruction set. Tiles is AmxTiles
// or its emulation.

namespace nmt::kernels {
namespace {

/// Rows from which a product takes tiles; fewer use VNNI. Measured on Intel Granite Rapids: in a
/// loop over one product, tiles are as fast from four rows on; in a decoder, which does other work
/// between its products, from twelve on (docs/design/products.md).
constexpr std::int64_t min_tiled_rows = 12;

/// The instruction set of int8_part().
template <class Tiles>
struct TiledDots {
  static constexpr std::int64_t row_unit = max_tile_rows;
  static constexpr std::int64_t step_bytes = max_tile_bytes;
  static constexpr std::int64_t step_groups = step_bytes / dot_depth;

  static std::int64_t groups(std::int64_t k) { return rounded(k, dot_depth) / dot_depth; }
  /// An odd number of cache lines: rows of a tile share no cache set.
  static std::int64_t stride(std::int64_t k) { return rounded(k, step_bytes) | step_bytes; }

  /// The last step reads the last 16 rows of a panel, some of which the step before has read: those
  /// get activations of 0, so a panel needs no padding. With fewer rows, the tiles are smaller.
  static void arrange(std::int64_t k, std::int8_t* row) {
    const std::int64_t used = groups(k) % step_groups * dot_depth;
    if (used == 0 || k <= step_bytes) return;
    std::int8_t* const last = row + k / step_bytes * step_bytes;
    std::memmove(last + step_bytes - used, last, static_cast<std::size_t>(used));
    std::fill_n(last, step_bytes - used, std::int8_t{0});
  }

  /// Columns [n_begin, n_end) of some rows of C.
  static void multiply(const Int8Product& p, const QuantizedRows& a, std::int64_t n_begin,
                       std::int64_t n_end, float* c) {
    const RowTiles tiles(a.count);
    const TileSession<Tiles> session(
        product_tiles(tiles.height, std::min(groups(p.k), step_groups)));
    // As many tiles of columns as there are sums.
    if (tiles.count == 1)
      multiply_columns<1, 4>(p, a, tiles, n_begin, n_end, c);
    else
      multiply_columns<2, 2>(p, a, tiles, n_begin, n_end, c);
  }

 private:
  template <int row_tiles, int panels>
  static void multiply_columns(const Int8Product& p, const QuantizedRows& a, const RowTiles& tiles,
                               std::int64_t n_begin, std::int64_t n_end, float* c) {
    std::int64_t j = n_begin;
    constexpr std::int64_t width = panels * dot_columns;
    for (; j + width <= rounded(n_end, dot_columns); j += width)
      multiply_rows<row_tiles, panels>(p, a, tiles, j, n_end, c);
    for (; j < n_end; j += dot_columns) multiply_rows<row_tiles, 1>(p, a, tiles, j, n_end, c);
  }

  template <int row_tiles, int panels>
  static void multiply_rows(const Int8Product& p, const QuantizedRows& a, const RowTiles& tiles,
                            std::int64_t column, std::int64_t n_end, float* c) {
    for (std::int64_t t = 0; t < tiles.count; t += row_tiles) {
      const std::int64_t row = t * tiles.height,
                         rows = std::min(row_tiles * tiles.height, a.count - row);
      if (tiles.count - t == 1)
        multiply_block<1, panels>(p, a, tiles.height, row, rows, column, n_end, c);
      else
        multiply_block<row_tiles, panels>(p, a, tiles.height, row, rows, column, n_end, c);
    }
  }

  // Rows [row, row + rows), which are `height` of each tile but the last, and the columns of
  // panels.
  template <int row_tiles, int panels>
  static void multiply_block(const Int8Product& p, const QuantizedRows& a, std::int64_t height,
                             std::int64_t row, std::int64_t rows, std::int64_t column,
                             std::int64_t n_end, float* c) {
    constexpr std::int64_t width = panels * dot_columns, sum_bytes = sizeof(std::int32_t);
    alignas(64) std::int32_t sums[row_tiles * max_tile_rows * width];
    const std::int64_t depth = groups(p.k), used = depth % step_groups;
    tile_block<Tiles, TileElements::int8, row_tiles, panels>(
        {.steps = (depth + step_groups - 1) / step_groups,
         .a = reinterpret_cast<const char*>(a.values + row * a.stride),
         .a_row = a.stride,
         .a_tile = height * a.stride,
         .b = reinterpret_cast<const char*>(p.panel(column)),
         .b_row = dot_columns * dot_depth,
         .b_step = step_groups * dot_columns * dot_depth,
         .b_tile = panel_bytes(p.k),
         .b_two = 2 * panel_bytes(p.k),
         .b_back =
             depth > step_groups && used > 0 ? (step_groups - used) * dot_columns * dot_depth : 0,
         .c = reinterpret_cast<char*>(sums),
         .c_row = width * sum_bytes,
         .c_tile = height * width * sum_bytes});
    finish_rows(p, {rows, column, std::min(width, n_end - column), width, sums, a.sums + row},
                a.steps + row, c + row * p.ldc + column);
  }
};

}  // namespace
}  // namespace nmt::kernels
