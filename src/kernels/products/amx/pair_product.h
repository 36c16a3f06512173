#pragma once

#include "kernels/products/amx/blocks.h"
#include "kernels/products/bf16/bf16_products.h"
#include "kernels/products/bf16/pairs.h"
#include "kernels/products/blocks/thread_scratch.h"
#include "kernels/products/product.h"
#include "kernels/products/tile.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

// Products of pairs (pairs.h) in tiles: a tile of A is up to 16 rows of 16 pairs, a tile of B 16
// pairs of rows of half a panel. k is cut every 32 elements from its start, so an output depends
// neither on the number of rows, nor on the position of its row, nor on how the product is split.
// Tiles is AmxTiles or its emulation. `parts` numbers in bfloat16 stand for an input
// (round_to_parts()): 1, or 3 for the precision of float32. Everything here has internal linkage,
// as in tile.h.

#if defined(__AVX512F__) && defined(__AVX512BW__)
namespace nmt::kernels {
namespace {

constexpr std::int64_t tile_pairs = 16;  // along k, of one instruction
constexpr std::int64_t pair_bytes = sizeof(Pair);
// A block of B, [depth][columns], stays in the L2 cache while all rows of A are processed.
constexpr std::int64_t tiled_block_pairs = 160 * 1024;
// Pairs of a stretch of k: two tiles of rows of A and the tiles of B that are multiplied with them
// stay in the L1 cache.
template <int parts>
constexpr std::int64_t tiled_stretch = parts == 1 ? 128 : 64;
// Between copied rows, which have their parts side by side: an odd number of cache lines.
template <int parts>
constexpr std::int64_t tiled_stride = parts* tiled_stretch<parts> + tile_pairs;
// Blocks of two tiles of rows that are copied at once from a transposed A.
constexpr std::int64_t copied_blocks = 8;
constexpr std::int64_t copied_rows = copied_blocks * 2 * max_tile_rows;

/// Pairs of a column of a packed B: whole steps, or all pairs where they are less than a step. They
/// fit in the k floats of pack().
inline std::int64_t tiled_height(std::int64_t k) {
  const std::int64_t pairs = (k + 1) / 2;
  return pairs < tile_pairs ? pairs : (pairs + tile_pairs - 1) / tile_pairs * tile_pairs;
}

/// pack_pairs() with zeros from k_end on, so that a panel has `height` rows.
template <int parts>
void pack_tiled(bool transpose_b, std::int64_t k_begin, std::int64_t k_end, std::int64_t n_begin,
                std::int64_t n_end, const float* b, std::int64_t ldb, std::int64_t height,
                Pair* packed) {
  const std::int64_t panel_stride = parts * height * panel_width,
                     rows = std::min(height, tile_pairs), part_stride = rows * panel_width;
  pack_pairs<parts>(transpose_b, k_begin, k_end, n_begin, n_end, b, ldb, packed, panel_stride,
                    part_stride);
  const std::int64_t used = (k_end - k_begin + 1) / 2 - (height - rows);  // of the last rows
  if (used == rows) return;
  for (std::int64_t n = n_begin; n < n_end; n += panel_width, packed += panel_stride)
    for (int part = 0; part < parts; ++part)
      std::memset(packed + ((height - rows) * parts + part * rows + used) * panel_width, 0,
                  static_cast<std::size_t>((rows - used) * panel_width * pair_bytes));
}

/// 16 pairs of each of `rows` <= 16 columns of A stored [k,m], from row k on. Rows from k_end on
/// are zeros.
template <int parts>
NMT_PAIR_FUNCTION void pairs_of_columns(const float* a, std::int64_t lda, std::int64_t rows,
                                        std::int64_t k, std::int64_t k_end, float* to) {
  const __mmask16 used = lanes_below(rows);
  __m512i pairs[parts][tile_pairs];
#pragma GCC unroll 16
  for (int i = 0; i < tile_pairs; ++i) {
    const std::int64_t row = k + 2 * i;
    const float* even = a + row * lda;
    __m512i both[parts] = {};
    if (row < k_end) pairs_of_two_rows(even, row + 1 < k_end ? even + lda : nullptr, used, both);
#pragma GCC unroll 4
    for (int part = 0; part < parts; ++part) pairs[part][i] = both[part];
  }
#pragma GCC unroll 4
  for (int part = 0; part < parts; ++part) {
    transpose16(pairs[part]);
#pragma GCC unroll 16
    for (int r = 0; r < max_tile_rows; ++r)
      if (r < rows)
        _mm512_storeu_si512(to + part * tiled_stretch<parts> + r * tiled_stride<parts>,
                            pairs[part][r]);
  }
}

/// Copies rows of A over [k, k_end) as pairs, with zeros in the rest of the last step. Columns of a
/// transposed A are copied in the order of memory, a step of all of them after the other. Rows of
/// the same size from `ahead` on are brought to the second-level cache, for the next copy.
template <int parts>
void copy_pairs(const Product& p, Range rows, std::int64_t k, std::int64_t k_end,
                const float* ahead, float* out) {
  if (p.transpose_a) {
    for (; k < k_end; k += 2 * tile_pairs, out += tile_pairs)
      for (std::int64_t r = rows.begin; r < rows.end; r += max_tile_rows)
        pairs_of_columns<parts>(p.a + r, p.lda, std::min<std::int64_t>(max_tile_rows, rows.end - r),
                                k, k_end, out + (r - rows.begin) * tiled_stride<parts>);
    return;
  }
  for (std::int64_t r = rows.begin; r < rows.end; ++r, out += tiled_stride<parts>) {
    const std::int64_t last = (k_end - k - 1) / (2 * tile_pairs) * tile_pairs;
    for (int part = 0; part < parts; ++part)
      std::memset(out + last + part * tiled_stretch<parts>, 0, tile_pairs * pair_bytes);
    for (std::int64_t i = 0; i < k_end - k; i += 16)
      __builtin_prefetch(ahead + (r - rows.begin) * p.lda + i, 0, 2);
    pairs_of_row<parts>(p.a + r * p.lda + k, k_end - k, out, tiled_stretch<parts>);
  }
}

/// Columns of B over a stretch of k: panels of 32 columns.
struct TiledPanels {
  const Pair* first;
  std::int64_t panel_stride, part_stride;
};

/// One or two tiles of rows of A, `used` rows of them, over all panels of a block of B. C [used,
/// columns].
template <class Tiles, int parts, int row_tiles>
void multiply_row_tiles(std::int64_t height, std::int64_t used, std::int64_t steps, const float* a,
                        const TiledPanels& b, std::int64_t columns, bool accumulate, float* c,
                        std::int64_t ldc) {
  // A single tile of rows takes two panels at once, for as many independent sums.
  constexpr int wide = row_tiles == 1 ? 2 : 1;
  constexpr std::int64_t float_bytes = sizeof(float);
  TileBlock block{.steps = steps,
                  .a = reinterpret_cast<const char*>(a),
                  .a_row = tiled_stride<parts> * float_bytes,
                  .a_tile = height * tiled_stride<parts> * float_bytes,
                  .b_row = panel_width * pair_bytes,
                  .b_step = parts * tile_pairs * panel_width * pair_bytes,
                  .b_tile = panel_width / 2 * pair_bytes,
                  .b_two = b.panel_stride * pair_bytes,
                  .a_part = tiled_stretch<parts> * float_bytes,
                  .b_part = b.part_stride * pair_bytes,
                  .accumulate = accumulate};
  const auto run = [&]<int panels>(std::integral_constant<int, panels>, std::int64_t n) {
    constexpr std::int64_t width = panels * panel_width;
    const std::int64_t valid = std::min(columns - n, width);
    block.b = reinterpret_cast<const char*>(b.first + n / panel_width * b.panel_stride);
    const auto multiply = [&](float* to, std::int64_t stride) {
      block.c = reinterpret_cast<char*>(to);
      block.c_row = stride * float_bytes;
      block.c_tile = height * stride * float_bytes;
      block.ahead = reinterpret_cast<const char*>(c + row_tiles * height * ldc + n);
      block.ahead_row = ldc * float_bytes;
      tile_block<Tiles, TileElements::bfloat16, row_tiles, 2 * panels, parts>(block);
    };
    if (used == row_tiles * height && valid == width) return multiply(c + n, ldc);
    // Unused rows and columns go through a buffer, so that only C is written.
    alignas(64) float edge[row_tiles * max_tile_rows * width] = {};
    const auto bytes = static_cast<std::size_t>(valid) * sizeof(float);
    if (accumulate)
      for (std::int64_t r = 0; r < used; ++r) std::memcpy(edge + r * width, c + r * ldc + n, bytes);
    multiply(edge, width);
    for (std::int64_t r = 0; r < used; ++r) std::memcpy(c + r * ldc + n, edge + r * width, bytes);
  };
  std::int64_t n = 0;
  for (; n + wide * panel_width <= columns; n += wide * panel_width)
    run(std::integral_constant<int, wide>(), n);
  for (; n < columns; n += panel_width) run(std::integral_constant<int, 1>(), n);
}

/// Rows of C over a stretch of k: C (+)= A B, of rows that copy_pairs() has copied to `a`.
template <class Tiles, int parts>
void multiply_rows(const RowTiles& tiles, std::int64_t rows, std::int64_t steps, float* a,
                   const TiledPanels& b, std::int64_t columns, bool accumulate, float* c,
                   std::int64_t ldc) {
  const std::int64_t two_tiles = 2 * tiles.height;
  for (std::int64_t r = 0; r < rows; r += two_tiles, a += two_tiles * tiled_stride<parts>) {
    const std::int64_t used = std::min(two_tiles, rows - r);
    const bool two = used > tiles.height;
    const std::int64_t unused = (two ? 2 : 1) * tiles.height - used;
    std::memset(a + used * tiled_stride<parts>, 0,
                static_cast<std::size_t>(unused * tiled_stride<parts>) * sizeof(float));
    (two ? multiply_row_tiles<Tiles, parts, 2>
         : multiply_row_tiles<Tiles, parts, 1>)(tiles.height, used, steps, a, b, columns,
                                                accumulate, c + r * ldc, ldc);
  }
}

/// The blocks of a product in tiles.
template <int parts>
struct TiledBlocks {
  std::int64_t depth_unit;  ///< pairs of a tile
  std::int64_t stretch;     ///< pairs of a copy of rows of A, whole tiles
  std::int64_t columns;     ///< of B and C, whole panels
  std::int64_t depth;       ///< pairs of a block of B, whole stretches

  TiledBlocks(std::int64_t height, std::int64_t n, bool transpose_a)
      : depth_unit(std::min(height, tile_pairs)) {
    const std::int64_t stretches = (height + tiled_stretch<parts> - 1) / tiled_stretch<parts>;
    stretch = ((height + stretches - 1) / stretches + depth_unit - 1) / depth_unit * depth_unit;
    // Of about equal width, so that no copy of A serves only a few columns.
    const std::int64_t most = tiled_block_pairs / parts / stretch / panel_width * panel_width,
                       blocks = n / most + 1;
    columns = (n / panel_width / blocks + 1) * panel_width;
    // Each block along k reads and writes C again, so blocks are deep. With a transposed A, C is a
    // gradient of weights, which stays in the L2 cache beside a small block.
    depth = transpose_a ? stretch : tiled_block_pairs / parts / columns / stretch * stretch;
  }
};

/// Bf16Products::part in tiles.
template <class Tiles, int parts>
void tiled_part(const Product& p, std::int64_t m_begin, std::int64_t m_end, std::int64_t n_begin,
                std::int64_t n_end) {
  static_assert(panel_width == 32);
  float* const a_copy = thread_scratch<CopiesOfA>(copied_rows * tiled_stride<parts>);
  static_assert(sizeof(Pair) == sizeof(float));
  // A packed B is read where it is.
  Pair* const b_block =
      p.packed ? nullptr : reinterpret_cast<Pair*>(thread_scratch<BlockOfB>(tiled_block_pairs));
  const RowTiles tiles(m_end - m_begin);
  const std::int64_t height = tiled_height(p.k);
  const TiledBlocks<parts> blocks(height, n_end - n_begin, p.transpose_a);
  const std::int64_t rows_step = (p.transpose_a ? copied_blocks : 1) * 2 * tiles.height;
  const TileSession<Tiles> session(product_tiles(tiles.height, blocks.depth_unit));
  for (std::int64_t n = n_begin; n < n_end; n += blocks.columns) {
    const std::int64_t columns = std::min(blocks.columns, n_end - n);
    for (std::int64_t first = 0; first < height; first += blocks.depth) {
      const std::int64_t last = std::min(first + blocks.depth, height);
      TiledPanels b{b_block, parts * (last - first) * panel_width, blocks.depth_unit * panel_width};
      if (p.packed)
        b = {reinterpret_cast<const Pair*>(p.packed) + (n * height + first * panel_width) * parts,
             parts * height * panel_width, b.part_stride};
      else
        pack_tiled<parts>(p.transpose_b, 2 * first, std::min(p.k, 2 * last), n, n + columns, p.b,
                          p.ldb, last - first, b_block);
      for (std::int64_t m = m_begin; m < m_end; m += rows_step) {
        const Range rows{m, std::min(m + rows_step, m_end)};
        for (std::int64_t from = first; from < last; from += blocks.stretch) {
          const std::int64_t to = std::min(from + blocks.stretch, last);
          const float* const ahead =
              to < last ? p.a + m * p.lda + 2 * to : p.a + (m + rows_step) * p.lda + 2 * first;
          copy_pairs<parts>(p, rows, 2 * from, std::min(p.k, 2 * to), ahead, a_copy);
          multiply_rows<Tiles, parts>(
              tiles, rows.end - m, (to - from) / blocks.depth_unit, a_copy,
              {b.first + (from - first) * parts * panel_width, b.panel_stride, b.part_stride},
              columns, p.accumulate || from > 0, p.c + m * p.ldc + n, p.ldc);
        }
      }
    }
  }
}

/// Bf16Products::pack for tiled_part().
template <int parts>
void pack_for_tiles(bool transpose_b, std::int64_t k, std::int64_t n_begin, std::int64_t n_end,
                    const float* b, std::int64_t ldb, float* packed) {
  const std::int64_t height = tiled_height(k);
  pack_tiled<parts>(transpose_b, 0, k, n_begin, n_end, b, ldb, height,
                    reinterpret_cast<Pair*>(packed) + n_begin * parts * height);
}

/// All of it.
template <class Tiles, int parts>
Bf16Products tiled_products(const char* name) {
  return {name,
          true,
          parts,
          [](std::int64_t k) { return parts * tiled_height(k); },
          pack_for_tiles<parts>,
          tiled_part<Tiles, parts>};
}

}  // namespace
}  // namespace nmt::kernels
#endif
