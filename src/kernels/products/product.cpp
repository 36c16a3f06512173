#include "kernels/products/product.h"

#include "core/error.h"
#include "kernels/products/pairs.h"
#include "kernels/products/product_library.h"
#include "kernels/products/rounded_products.h"
#include "kernels/products/separate.h"
#include "kernels/products/tile.h"

#include <cstring>
#include <type_traits>
#include <vector>

#include <unistd.h>

namespace nmt::kernels {
namespace {

// A block of B, [stretch][columns], stays in the L2 cache while the rows of A are processed.
constexpr std::int64_t block_floats = 160 * 1024;
// Most rows of a transposed A that are copied at once: 2 MB in stretches of k.
constexpr std::int64_t copied_columns = 2048;

// Bytes; 1 MB where the system does not tell.
std::int64_t second_level_cache() {
#ifdef _SC_LEVEL2_CACHE_SIZE
  if (const long bytes = ::sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) return bytes;
#endif
  return 1024 * 1024;
}

std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

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
};
template <int rows, bool along_k, class B>
constexpr Tiles<B> tiles_for = {tile<rows, 1, along_k, B>, tile<rows, wide<rows>, along_k, B>,
                                wide<rows>};
#if defined(__AVX512F__) && defined(__AVX512BW__)
template <int rows, bool along_k>
constexpr Tiles<Pair> tiles_for<rows, along_k, Pair> = {
    pair_tile<rows, 1, along_k>, pair_tile<rows, wide<rows>, along_k>, wide<rows>};
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

std::int64_t whole_panels(std::int64_t columns) {
  return columns / panel_width * panel_width;
}
// Columns of the panels of a packed matrix.
std::int64_t packed_columns(std::int64_t columns) {
  return whole_panels(columns + panel_width - 1);
}

// A block of B over one stretch of k. A partial last panel may be stored elsewhere.
template <class B>
struct Block {
  const B* panels;
  std::int64_t panel_stride, step;
  const B* edge;
};

// Room for copies of a transposed A, kept by the thread: up to 2 MB.
float* room_for_copies(std::int64_t floats) {
  struct Line {
    alignas(64) float values[16];
  };
  thread_local std::vector<Line> lines;
  const auto size = static_cast<std::size_t>((floats + 15) / 16);
  if (lines.size() < size) {
    lines.clear();  // nothing is moved to the new memory
    lines.resize(size);
  }
  return lines.data()->values;
}

// Rows of A, split evenly into tiles, so that no tile has a single row.
struct RowSplit {
  Range all;
  std::int64_t tiles = (all.end - all.begin + tile_rows - 1) / tile_rows;
  std::int64_t begin(std::int64_t t) const { return all.begin + (all.end - all.begin) * t / tiles; }
  Range operator[](std::int64_t t) const { return {begin(t), begin(t + 1)}; }
};

// A stretch of k: `depth` elements of panels of B from element `first` on. A Pair has two rows of
// B; the last one may have one.
template <class B>
struct Stretch {
  std::int64_t first, depth;
  std::int64_t k() const { return first * along_k_per<B>; }
  std::int64_t k_end(const Product& p) const {
    return smaller(p.k, (first + depth) * along_k_per<B>);
  }
};

// Copies rows of A over a stretch of k for tile(); A is not transposed.
template <class B>
void copy_rows(const Product& p, Range rows, Stretch<B> stretch_, float* out) {
  const std::int64_t k = stretch_.k(), count = stretch_.k_end(p) - k;
  for (std::int64_t r = rows.begin; r < rows.end; ++r, out += copied_stride) {
    const float* from = p.a + r * p.lda + k;
#if defined(__AVX512F__) && defined(__AVX512BW__)
    if constexpr (std::is_same_v<B, Pair>) {
      pairs_of_row(from, count, out);
      continue;
    }
#endif
    std::memcpy(out, from, static_cast<std::size_t>(count) * sizeof(float));
    if (p.rounded) round_to_bf16(out, count);
  }
}

#if defined(__AVX512F__) && defined(__AVX512BW__)
// Copies the rows [k, k_end) of a tile of A stored [k,m] as pairs.
[[gnu::target("avx512bf16")]] void copy_column_pairs(const Product& p, Range rows, std::int64_t k,
                                                     std::int64_t k_end, float* out) {
  const __mmask16 used = lanes_below(rows.end - rows.begin);
  for (; k < k_end; k += 2, out += tile_rows) {
    const float* even = p.a + k * p.lda + rows.begin;
    __builtin_prefetch(even + 64);
    __builtin_prefetch(even + p.lda + 64);
    _mm512_mask_storeu_epi32(out, used,
                             pairs_of_two_rows(even, k + 1 < k_end ? even + p.lda : nullptr, used));
  }
}
#endif

// Copies `count` elements of some rows of A stored [k,m] to a tile.
[[gnu::always_inline]] inline void copy_lines(std::int64_t lines, std::int64_t count,
                                              const float* from, std::int64_t lda, float* to) {
  for (std::int64_t i = 0; i < lines; ++i, from += lda, to += tile_rows) {
    __builtin_prefetch(from + 64);
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
  }
}

// For A stored [k,m]: copies the tiles of a group of rows, [tile_rows * stretch] each. The inner
// loops read a few rows of A from their first column on, as the hardware prefetches them, and write
// whole cache lines.
template <class B>
void copy_columns(const Product& p, const RowSplit& split, Range group, Stretch<B> stretch_,
                  float* out) {
  constexpr std::int64_t step = 8;
  for (std::int64_t first = 0; first < stretch_.depth; first += step) {
    const Stretch<B> here{stretch_.first + first, smaller(step, stretch_.depth - first)};
    const std::int64_t k = here.k(), k_end = here.k_end(p);
    float* to = out + first * tile_rows;
    for (std::int64_t t = group.begin; t < group.end; ++t, to += tile_rows * stretch) {
      const Range rows = split[t];
#if defined(__AVX512F__) && defined(__AVX512BW__)
      if constexpr (std::is_same_v<B, Pair>) {
        copy_column_pairs(p, rows, k, k_end, to);
        continue;
      }
#endif
      const float* const from = p.a + k * p.lda + rows.begin;
      if (rows.begin + tile_rows <= p.m)  // copying too much only fills unused elements
        copy_lines(k_end - k, tile_rows, from, p.lda, to);
      else
        copy_lines(k_end - k, rows.end - rows.begin, from, p.lda, to);
      for (std::int64_t i = 0; p.rounded && i < k_end - k; ++i)
        round_to_bf16(to + i * tile_rows, rows.end - rows.begin);
    }
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

// One row of tiles over all panels of a block of B.
template <class B>
void multiply_rows(int rows, bool along_k, std::int64_t depth, const float* a, const Block<B>& b,
                   std::int64_t columns, bool accumulate, float* c, std::int64_t ldc,
                   Ahead& ahead) {
  const Tiles<B> t = along_k ? tiles<true, B>(rows) : tiles<false, B>(rows);
  const std::int64_t whole = whole_panels(columns);
  // The rows of a B that is read in place are apart, so the hardware does not prefetch them. A
  // panel is best read as one stream by tiles that have enough FMA chains with it.
  const bool in_place = b.step != panel_width, several = in_place || rows <= 3;
  const std::int64_t b_ahead = in_place ? 8 * b.step : 0;
  TileJob<B> job = {depth, a,   b.panels, b.panel_stride, b.step, accumulate,
                    c,     ldc, c,        {a, a},         0,      b_ahead};
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
  // A partial last panel goes through a buffer, so that nothing past the end of a row is written.
  alignas(64) float edge[tile_rows * panel_width];
  const std::size_t bytes = static_cast<std::size_t>(columns - n) * sizeof(float);
  if (accumulate)
    for (int r = 0; r < rows; ++r) {
      std::memset(edge + r * panel_width, 0, panel_width * sizeof(float));
      std::memcpy(edge + r * panel_width, c + r * ldc + n, bytes);
    }
  t.one({depth, a, b.edge, 0, panel_width, accumulate, edge, panel_width, edge, {a, a}, 0, 0});
  for (int r = 0; r < rows; ++r) std::memcpy(c + r * ldc + n, edge + r * panel_width, bytes);
}

// Elements of a column of a packed B.
template <class B>
std::int64_t column_elements(std::int64_t k) {
  return (k + along_k_per<B> - 1) / along_k_per<B>;
}

// Columns [n, n+columns) of a packed B from element `first` of a column on, in place.
template <class B>
Block<B> packed_block(const Product& p, const B* packed, std::int64_t n, std::int64_t columns,
                      std::int64_t first) {
  const std::int64_t height = column_elements<B>(p.k);
  const B* at = packed + n * height + first * panel_width;
  return {at, height * panel_width, panel_width, at + whole_panels(columns) * height};
}

// Columns [n, n+columns) of B over a stretch of k: in place, or packed into `buffer`.
template <class B>
Block<B> take_block(const Product& p, std::int64_t n, std::int64_t columns, Stretch<B> stretch_,
                    bool direct, float* buffer) {
  const std::int64_t k = stretch_.k(), depth = stretch_.depth, whole = whole_panels(columns);
  if constexpr (std::is_same_v<B, std::uint16_t>) {
    return packed_block(p, p.packed_bf16, n, columns, k);
#if defined(__AVX512F__) && defined(__AVX512BW__)
  } else if constexpr (std::is_same_v<B, Pair>) {
    if (p.packed)
      return packed_block(p, reinterpret_cast<const Pair*>(p.packed), n, columns, stretch_.first);
    Pair* const pairs = reinterpret_cast<Pair*>(buffer);
    pack_pairs(p.transpose_b, k, stretch_.k_end(p), n, n + columns, p.b, p.ldb, pairs,
               depth * panel_width);
    return {pairs, depth * panel_width, panel_width, pairs + whole * depth};
#endif
  } else {
    if (p.packed) return packed_block(p, p.packed, n, columns, k);
    if (direct) {
      if (whole < columns)
        pack_panels(false, k, k + depth, n + whole, n + columns, p.b, p.ldb, buffer, 0);
      return {p.b + k * p.ldb + n, panel_width, p.ldb, buffer};
    }
    pack_panels(p.transpose_b, k, k + depth, n, n + columns, p.b, p.ldb, buffer,
                depth * panel_width);
    if (p.rounded) round_to_bf16(buffer, depth * packed_columns(columns));
    return {buffer, depth * panel_width, panel_width, buffer + whole * depth};
  }
}

// A group of tiles of rows for one block of B. `copied` is of copy_columns(), or room for a tile of
// rows.
template <class B>
void multiply_block(const Product& p, const RowSplit& split, Range group, const Block<B>& block,
                    Range columns, Stretch<B> stretch_, float* copied) {
  const std::int64_t k = stretch_.k();
  for (std::int64_t t = group.begin; t < group.end; ++t) {
    const Range rows = split[t];
    Ahead ahead = {};
    if (!p.transpose_a) {
      copy_rows(p, rows, stretch_, copied);
      if (t + 1 < group.end) ahead = {p.a + rows.end * p.lda + k, p.lda, rows.end - rows.begin};
    }
    multiply_rows(static_cast<int>(rows.end - rows.begin), p.transpose_a, stretch_.depth, copied,
                  block, columns.end - columns.begin, p.accumulate || k > 0,
                  p.c + rows.begin * p.ldc + columns.begin, p.ldc, ahead);
    if (p.transpose_a) copied += tile_rows * stretch;
  }
}

// Whether this many rows read B in place. Packing pays off from 3 rows of tiles if B exceeds the
// second-level cache, from 4 if its rows share sets of the first-level cache, else from 11
// (docs/design/products.md).
bool reads_in_place(const Product& p, std::int64_t rows) {
  static const std::int64_t cached = 3 * second_level_cache() / 4;
  const std::int64_t bytes = p.k * p.n * static_cast<std::int64_t>(sizeof(float));
  const bool share_sets = p.ldb % 1024 == 0;
  return rows <= (bytes > cached ? 2 : share_sets ? 3 : 10) * tile_rows;
}

// product_part() with a B of one type.
template <class B>
void multiply_part(const Product& p, std::int64_t m_begin, std::int64_t m_end, std::int64_t n_begin,
                   std::int64_t n_end) {
  alignas(64) float b_block[block_floats];
  const RowSplit split{{m_begin, m_end}};
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

// RoundedProducts::pack where the processor multiplies pairs, and where it does not.
#if defined(__AVX512F__) && defined(__AVX512BW__)
void pack_columns_of_pairs(bool transpose_b, std::int64_t k, std::int64_t n_begin,
                           std::int64_t n_end, const float* b, std::int64_t ldb, float* packed) {
  const std::int64_t height = column_elements<Pair>(k);
  pack_pairs(transpose_b, 0, k, n_begin, n_end, b, ldb,
             reinterpret_cast<Pair*>(packed) + n_begin * height, height * panel_width);
}
#endif
void pack_rounded_floats(bool transpose_b, std::int64_t k, std::int64_t n_begin, std::int64_t n_end,
                         const float* b, std::int64_t ldb, float* packed) {
  float* const first = packed + n_begin * k;
  pack_panels(transpose_b, 0, k, n_begin, n_end, b, ldb, first, k * panel_width);
  round_to_bf16(first, k * packed_columns(n_end - n_begin));
}

}  // namespace

void product_part(const Product& p, std::int64_t m_begin, std::int64_t m_end, std::int64_t n_begin,
                  std::int64_t n_end) {
  if (m_begin >= m_end || n_begin >= n_end) return;
  if (p.k == 0) {
    if (!p.accumulate)
      for (std::int64_t r = m_begin; r < m_end; ++r)
        std::memset(p.c + r * p.ldc + n_begin, 0,
                    static_cast<std::size_t>(n_end - n_begin) * sizeof(float));
    return;
  }
  if (p.separate) return separate_product_part(p, m_begin, m_end, n_begin, n_end);
  if (p.library && p.library->takes(p)) return p.library->run(p, m_begin, m_end, n_begin, n_end);
  if (p.packed_bf16) return multiply_part<std::uint16_t>(p, m_begin, m_end, n_begin, n_end);
  if (p.rounded) return p.rounded->part(p, m_begin, m_end, n_begin, n_end);
  multiply_part<float>(p, m_begin, m_end, n_begin, n_end);
}

const RoundedProducts& rounded_products() {
  if (const RoundedProducts* const amx = amx_products()) return *amx;
#if defined(__AVX512F__) && defined(__AVX512BW__)
  static constexpr RoundedProducts pairs{"bfloat16 by AVX-512 BF16", true, column_elements<Pair>,
                                         pack_columns_of_pairs, multiply_part<Pair>};
  if (has_pairs()) return pairs;
#endif
  static constexpr RoundedProducts floats{
      "inputs rounded to bfloat16 and multiplied in float32 (without AVX-512 BF16 this is slower "
      "than float32)",
      false, column_elements<float>, pack_rounded_floats, multiply_part<float>};
  return floats;
}

const RoundedProducts* fast_rounded_products() {
  static const RoundedProducts* const products = [] {
    const RoundedProducts& all = rounded_products();
    const bool fast = &all == amx_products() || has_fast_pairs();
    return all.is_native && fast ? &all : nullptr;
  }();
  return products;
}

void pack_panels(bool transpose_b, std::int64_t k_begin, std::int64_t k_end, std::int64_t n_begin,
                 std::int64_t n_end, const float* b, std::int64_t ldb, float* packed,
                 std::int64_t panel_stride) {
  const std::int64_t whole = whole_panels(n_end - n_begin);
  if (!transpose_b) {
    for (std::int64_t n = 0; n < whole; n += panel_width)
      for (std::int64_t k = k_begin; k < k_end; ++k) {
        const float* from = b + k * ldb + n_begin + n;
        __builtin_prefetch(from + 16 * ldb);
        __builtin_prefetch(from + 16 * ldb + 16);
        std::memcpy(packed + n / panel_width * panel_stride + (k - k_begin) * panel_width, from,
                    panel_width * sizeof(float));
      }
  } else {
    // One cache line of k at a time, so that each line of B is read once.
    for (std::int64_t n = 0; n < whole; n += panel_width)
      for (std::int64_t k0 = k_begin; k0 < k_end; k0 += 16)
        for (std::int64_t k = k0; k < smaller(k0 + 16, k_end); ++k)
          for (std::int64_t j = 0; j < panel_width; ++j)
            packed[n / panel_width * panel_stride + (k - k_begin) * panel_width + j] =
                b[(n_begin + n + j) * ldb + k];
  }
  const std::int64_t left = n_end - n_begin - whole;
  if (left == 0) return;
  packed += whole / panel_width * panel_stride;
  b += transpose_b ? (n_begin + whole) * ldb : n_begin + whole;
  for (std::int64_t k = k_begin; k < k_end; ++k)
    for (std::int64_t j = 0; j < panel_width; ++j)
      packed[(k - k_begin) * panel_width + j] = j >= left     ? 0.0f
                                                : transpose_b ? b[j * ldb + k]
                                                              : b[k * ldb + j];
}

Product plain_product(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
                      std::int64_t k, const float* a, std::int64_t lda, const float* b,
                      std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  NMT_CHECK(beta == 0.0f || beta == 1.0f, "gemm: beta is {}, expected 0 or 1", beta);
  return {.m = m,
          .n = n,
          .k = k,
          .a = a,
          .lda = lda,
          .transpose_a = transpose_a,
          .b = b,
          .ldb = ldb,
          .transpose_b = transpose_b,
          .accumulate = beta != 0.0f,
          .c = c,
          .ldc = ldc};
}

Product packed_product(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                       std::int64_t lda, const PackedWeight& packed, bool accumulate, float* c,
                       std::int64_t ldc) {
  return {.m = m,
          .n = n,
          .k = k,
          .a = a,
          .lda = lda,
          .packed = packed.f32,
          .packed_bf16 = packed.bf16,
          .accumulate = accumulate,
          .c = c,
          .ldc = ldc};
}

}  // namespace nmt::kernels
