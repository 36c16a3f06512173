#pragma once

#include "kernels/products/bf16/pairs.h"
#include "kernels/products/blocks/block.h"
#include "kernels/products/blocks/cache_size.h"
#include "kernels/products/blocks/row_copies.h"
#include "kernels/products/blocks/thread_scratch.h"
#include "kernels/products/product.h"
#include "kernels/products/tile.h"

#include <cstring>
#include <type_traits>

// The part of a product that a thread computes, by tiles of one type of B: the order of tiles, and
// whether B is packed. Everything here has internal linkage, as in tile.h.

namespace nmt::kernels {
namespace {

// A block of B, [stretch][columns], stays in the L2 cache while the rows of A are processed.
constexpr std::int64_t block_floats = 160 * 1024;
// Most rows of a transposed A that are copied at once: 2 MB in stretches of k.
constexpr std::int64_t copied_columns = 2048;

template <class B>
using Tile = void (*)(const TileJob<B>&);

// Few rows have too few independent FMA chains to hide the latency, so they use several panels at
// once. With 32 registers, up to six rows read two panels, in longer pieces of the rows of B.
template <int rows>
constexpr int wide = rows == 1                                ? 4
                     : rows <= 3 || 2 * rows + 2 <= tile_rows ? 2
                                                              : 1;

template <class B>
struct Tiles {
  Tile<B> one, several;
  int panels;
  Tile<B> prefetching;  // one panel, for multiply_by_panels()
};
template <int rows, bool along_k, class B>
constexpr Tiles<B> tiles_for = {tile<rows, 1, along_k, B>, tile<rows, wide<rows>, along_k, B>,
                                wide<rows>, nullptr};
template <int rows, bool along_k>
constexpr Tiles<float> tiles_for<rows, along_k, float> = {
    tile<rows, 1, along_k, float>, tile<rows, wide<rows>, along_k, float>, wide<rows>,
    tile<rows, 1, along_k, float, (2 * rows > tile_rows)>};
#if defined(__AVX512F__) && defined(__AVX512BW__)
template <int rows, bool along_k>
constexpr Tiles<Pair> tiles_for<rows, along_k, Pair> = {
    pair_tile<rows, 1, along_k>, pair_tile<rows, wide<rows>, along_k>, wide<rows>, nullptr};
#endif

template <bool along_k, class B>
Tiles<B> tiles(int rows) {
  static_assert(tile_rows <= 14);
  constexpr int top = tile_rows;
  switch (rows) {
#define NMT_ROWS(r) \
  case r: return tiles_for < (r) <= top ? (r) : 1, along_k, B >
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
    default: return tiles_for<top, along_k, B>;
#undef NMT_ROWS
  }
}

// Prefetches the rows of A that the next copy reads, two per tile, while the tiles compute.
struct Ahead {
  const float* at;
  std::int64_t next, left;  // stride in floats between rows; rows left
  template <class B>
  void take(TileJob<B>& job) {
    job.ahead_step = left > 0 ? 1 : 0;
    for (const float*& line : job.ahead) {
      line = at;
      if (left > 1) at += next;
      --left;
    }
  }
};

// The job of a tile of `rows` rows and fewer columns than a panel, through a buffer, so that
// nothing past the end of a row is written.
template <class B>
void run_edge(Tile<B> tile_function, int rows, std::int64_t columns, TileJob<B> job) {
  alignas(64) float edge[tile_rows * panel_width];
  const std::size_t bytes = static_cast<std::size_t>(columns) * sizeof(float);
  float* const c = job.c;
  const std::int64_t ldc = job.ldc;
  if (job.accumulate)
    for (int r = 0; r < rows; ++r) {
      std::memset(edge + r * panel_width, 0, panel_width * sizeof(float));
      std::memcpy(edge + r * panel_width, c + r * ldc, bytes);
    }
  job.c = edge;
  job.ldc = panel_width;
  job.next = edge;
  tile_function(job);
  for (int r = 0; r < rows; ++r) std::memcpy(c + r * ldc, edge + r * panel_width, bytes);
}

// One row of tiles over all panels of a block of B.
template <class B>
void multiply_rows(int rows, bool along_k, std::int64_t depth, const float* a, std::int64_t a_step,
                   const Block<B>& b, std::int64_t columns, bool accumulate, float* c,
                   std::int64_t ldc, Ahead& ahead) {
  const Tiles<B> t = along_k ? tiles<true, B>(rows) : tiles<false, B>(rows);
  const std::int64_t whole = whole_panels(columns);
  // The rows of a B that is read in place are apart, so the hardware does not prefetch them. A
  // panel is best read as one stream by tiles that have enough FMA chains with it.
  const bool in_place = b.step != panel_width, several = in_place || rows <= 3;
  const std::int64_t b_ahead = in_place ? 8 * b.step : 0;
  TileJob<B> job = {depth, a, a_step, b.panels, b.panel_stride, b.step, accumulate, c,
                    ldc,   c, {a, a}, 0,        b_ahead};
  const auto run = [&](Tile<B> tile_function, std::int64_t width) {
    job.next = job.c + width < c + columns ? job.c + width : c + rows * ldc;
    ahead.take(job);
    tile_function(job);
    job.c += width;
    job.b += width / panel_width * b.panel_stride;
  };
  std::int64_t n = 0;
  for (const std::int64_t step = t.panels * panel_width; several && n + step <= whole; n += step)
    run(t.several, step);
  for (; n < whole; n += panel_width) run(t.one, panel_width);
  if (n == columns) return;
  run_edge(t.one, rows, columns - n,
           {depth, a, a_step, b.edge, 0, panel_width, accumulate, c + n, ldc, c, {a, a}, 0, 0});
}

// Whether tiles read rows of A where they are: not if the rows share sets of the first-level cache.
template <class B>
bool reads_rows_in_place(const Product& p) {
  return !std::is_same_v<B, Pair> && !p.rounded && p.lda % 512 != 0;
}

// A group of tiles of rows for one block of B. `copied` is of copy_columns(), or room for a tile of
// rows.
template <class B>
void multiply_block(const Product& p, const RowSplit& split, Range group, const Block<B>& block,
                    Range columns, Stretch<B> stretch_, float* copied) {
  const std::int64_t k = stretch_.k();
  const bool in_place = reads_rows_in_place<B>(p);
  for (std::int64_t t = group.begin; t < group.end; ++t) {
    const Range rows = split[t];
    Ahead ahead = {};
    const float* a = copied;
    std::int64_t a_step = copied_stride;
    if (!p.transpose_a) {
      if (in_place) {
        a = p.a + rows.begin * p.lda + k;
        a_step = p.lda;
      } else {
        copy_rows(p, rows, stretch_, copied);
      }
      if (t + 1 < group.end) ahead = {p.a + rows.end * p.lda + k, p.lda, rows.end - rows.begin};
    }
    multiply_rows(static_cast<int>(rows.end - rows.begin), p.transpose_a, stretch_.depth, a, a_step,
                  block, columns.end - columns.begin, p.accumulate || k > 0,
                  p.c + rows.begin * p.ldc + columns.begin, p.ldc, ahead);
    if (p.transpose_a) copied += tile_rows * stretch;
  }
}

// Whether this many rows read B in place (docs/design/products.md). Packing pays off from 3 rows of
// tiles if B exceeds the second-level cache, from 4 if its rows share sets of the first-level
// cache, from 6 if B fills a quarter of the second-level cache, else from 11.
bool reads_in_place(const Product& p, std::int64_t rows) {
  static const std::int64_t cache = second_level_cache();
  const std::int64_t bytes = p.k * p.n * static_cast<std::int64_t>(sizeof(float));
  const bool share_sets = p.ldb % 1024 == 0;
  const int most = bytes > 3 * cache / 4 ? 2 : share_sets ? 3 : bytes > cache / 4 ? 5 : 10;
  return rows <= most * tile_rows;
}

// Whether multiply_by_panels() is faster (docs/design/products.md): the copies of up to 24 tiles of
// rows stay in the second-level cache. Where rows of B are 64 KB or more apart, its gains vanish
// for an A that is not transposed.
bool takes_panels(const Product& p, std::int64_t rows) {
  if (p.packed || p.rounded || p.transpose_b) return false;
  if (rows <= tile_rows || rows > 24 * tile_rows) return false;
  return p.transpose_a || (p.ldb < 16384 && !reads_in_place(p, rows));
}

// Packs one panel of B after the other and multiplies all rows by it; the copies of the rows stay
// in the second-level cache. The tiles of a panel prefetch the next panel of B, and then the rows
// of a transposed A that are copied next.
void multiply_by_panels(const Product& p, const RowSplit& split, Range columns) {
  constexpr std::int64_t line = 64 / sizeof(float);
  alignas(64) float panel[stretch * panel_width];
  const std::int64_t stretches = (p.k + stretch - 1) / stretch;
  const std::int64_t depth_step = (p.k + stretches - 1) / stretches;
  const std::int64_t a_stride = tile_rows * (p.transpose_a ? stretch : copied_stride);
  float* const copied = room_for_copies(split.tiles * a_stride);
  // The first tiles of a panel prefetch the next one, so that it arrives before the last tile ends.
  const std::int64_t prefetching = smaller(split.tiles, 8);
  for (std::int64_t k = 0; k < p.k; k += depth_step) {
    const std::int64_t depth = smaller(depth_step, p.k - k), k_next = k + depth;
    const Stretch<float> here{k, depth};
    Ahead ahead = {};
    if (p.transpose_a) {
      copy_columns(p, split, {0, split.tiles}, here, copied);
      if (k_next < p.k)
        ahead = {p.a + k_next * p.lda + split.all.begin, p.lda, smaller(depth_step, p.k - k_next)};
    } else {
      for (std::int64_t t = 0; t < split.tiles; ++t)
        copy_rows(p, split[t], here, copied + t * a_stride);
    }
    for (std::int64_t n = columns.begin; n < columns.end; n += panel_width) {
      const std::int64_t width = smaller(panel_width, columns.end - n);
      pack_panels(false, k, k_next, n, n + width, p.b, p.ldb, panel, 0);
      const bool more = n + 2 * panel_width <= columns.end;
      for (std::int64_t t = 0; t < split.tiles; ++t) {
        const Range rows = split[t];
        const int count = static_cast<int>(rows.end - rows.begin);
        const float* const a = copied + t * a_stride;
        float* const c = p.c + n;
        TileJob<float> job = {.depth = depth,
                              .a = a,
                              .a_step = copied_stride,
                              .b = panel,
                              .panel_stride = 0,
                              .b_step = panel_width,
                              .accumulate = p.accumulate || k > 0,
                              .c = c + rows.begin * p.ldc,
                              .ldc = p.ldc,
                              .next = t + 1 < split.tiles
                                          ? c + rows.end * p.ldc
                                          : c + split.all.begin * p.ldc + panel_width,
                              .ahead = {a, a},
                              .ahead_step = 0,
                              .b_ahead = 0};
        if (more && t < prefetching) {
          job.ahead[0] = p.b + (k + depth * t / prefetching) * p.ldb + n + panel_width;
          job.ahead[1] = job.ahead[0] + panel_width / 2;
          job.ahead_step = p.ldb;
          job.ahead_every = prefetching;
        } else {
          ahead.take(job);
          job.ahead_every = line;
          job.ahead_step *= line;
        }
        const Tile<float> one =
            (p.transpose_a ? tiles<true, float>(count) : tiles<false, float>(count)).prefetching;
        if (width == panel_width)
          one(job);
        else
          run_edge(one, count, width, job);
      }
    }
  }
}

// product_part() with a B of one type.
template <class B>
void multiply_part(const Product& p, std::int64_t m_begin, std::int64_t m_end, std::int64_t n_begin,
                   std::int64_t n_end) {
  const RowSplit split{{m_begin, m_end}};
  if constexpr (std::is_same_v<B, float>)
    if (takes_panels(p, m_end - m_begin)) return multiply_by_panels(p, split, {n_begin, n_end});
  // A packed B is read where it is.
  float* const b_block =
      p.packed || p.packed_bf16 ? nullptr : thread_scratch<BlockOfB>(block_floats);
  const std::int64_t height = column_elements<B>(p.k);
  const std::int64_t stretches = (height + stretch - 1) / stretch;
  const std::int64_t depth_step = (height + stretches - 1) / stretches;
  // Blocks of about equal width, so that no copy of A serves only a few columns.
  const std::int64_t blocks = (n_end - n_begin) / whole_panels(block_floats / depth_step) + 1;
  const std::int64_t columns_step = ((n_end - n_begin) / panel_width / blocks + 1) * panel_width;
  const bool direct = !p.rounded && !p.transpose_b && reads_in_place(p, m_end - m_begin);
  const auto multiply = [&](Range group, std::int64_t n, Stretch<B> here, float* copied) {
    const std::int64_t columns = smaller(columns_step, n_end - n);
    multiply_block(p, split, group, take_block<B>(p, n, columns, here, direct, b_block),
                   {n, n + columns}, here, copied);
  };
  const auto stretch_at = [&](std::int64_t first) {
    return Stretch<B>{first, smaller(depth_step, height - first)};
  };
  if (!p.transpose_a) {
    alignas(64) float copied[tile_rows * copied_stride];
    for (std::int64_t n = n_begin; n < n_end; n += columns_step)
      for (std::int64_t first = 0; first < height; first += depth_step)
        multiply({0, split.tiles}, n, stretch_at(first), copied);
    return;
  }
  // A copy of columns of A costs as much as packing B, so it serves all blocks of B.
  const std::int64_t groups = (m_end - m_begin + copied_columns - 1) / copied_columns;
  float* const copied = room_for_copies((split.tiles + groups - 1) / groups * tile_rows * stretch);
  for (std::int64_t first = 0; first < height; first += depth_step)
    for (std::int64_t g = 0; g < groups; ++g) {
      const Range group = {split.tiles * g / groups, split.tiles * (g + 1) / groups};
      copy_columns(p, split, group, stretch_at(first), copied);
      for (std::int64_t n = n_begin; n < n_end; n += columns_step)
        multiply(group, n, stretch_at(first), copied);
    }
}

#if defined(__AVX512F__) && defined(__AVX512BW__)
/// Bf16Products::pack where the processor multiplies pairs.
void pack_columns_of_pairs(bool transpose_b, std::int64_t k, std::int64_t n_begin,
                           std::int64_t n_end, const float* b, std::int64_t ldb, float* packed) {
  const std::int64_t height = column_elements<Pair>(k);
  pack_pairs(transpose_b, 0, k, n_begin, n_end, b, ldb,
             reinterpret_cast<Pair*>(packed) + n_begin * height, height * panel_width);
}
#endif

}  // namespace
}  // namespace nmt::kernels
