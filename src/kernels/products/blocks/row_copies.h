#pragma once

#include "kernels/products/bf16/pairs.h"
#include "kernels/products/blocks/thread_scratch.h"
#include "kernels/products/product.h"
#include "kernels/products/tile.h"

#include <cstring>
#include <type_traits>

// Copies of rows of A as tile() reads them, over one stretch of k.

namespace nmt::kernels {
namespace {

std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

// Room for copies of rows of A: up to 2 MB.
float* room_for_copies(std::int64_t floats) {
  return thread_scratch<CopiesOfA>(floats);
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
NMT_PAIR_FUNCTION void copy_column_pairs(const Product& p, Range rows, std::int64_t k,
                                         std::int64_t k_end, float* out) {
  const __mmask16 used = lanes_below(rows.end - rows.begin);
  for (; k < k_end; k += 2, out += tile_rows) {
    const float* even = p.a + k * p.lda + rows.begin;
    __builtin_prefetch(even + 64);
    __builtin_prefetch(even + p.lda + 64);
    __m512i pairs[1];
    pairs_of_two_rows(even, k + 1 < k_end ? even + p.lda : nullptr, used, pairs);
    _mm512_mask_storeu_epi32(out, used, pairs[0]);
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

}  // namespace
}  // namespace nmt::kernels
