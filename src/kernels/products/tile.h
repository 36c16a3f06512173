#pragma once

#include "kernels/vector.h"

#include <cstdint>

// The innermost tile of every float GEMM: `rows` x (`panels` * panel_width) outputs in registers
// over a stretch of k. Everything here has internal linkage, because the including file is compiled
// for several instruction sets.

namespace nmt::kernels {
namespace {

#if defined(__AVX512F__)
constexpr int tile_rows = 14;  // 28 accumulators, 2 of B, 1 of A: 31 of 32 registers
#elif defined(__AVX2__) && defined(__FMA__)
constexpr int tile_rows = 6;  // 12 accumulators, 2 of B, 1 of A: 15 of 16 registers
#elif defined(__aarch64__)
constexpr int tile_rows = 12;  // 24 accumulators, 2 of B, 1 of A: 27 of 32 registers
#else
constexpr int tile_rows = 4;
#endif

constexpr int panel_width = 2 * lanes;
/// Largest stretch of k for which tile_rows rows of A fit in a 32 KB L1 cache beside the stream of
/// B.
constexpr int stretch = 256;
/// Row stride of a copied A. Not a power of two, because such rows would share cache sets.
constexpr int copied_stride = stretch + lanes;

/// A stretch of a panel and tile_rows rows of A fill the L1 cache, so lines of C that are
/// prefetched before a tile computes would be evicted before the next tile reads them.
constexpr bool prefetches_late = (panel_width + tile_rows) * stretch * sizeof(float) > 32 * 1024;

/// Arguments of a tile. B is float32, or bfloat16, which is widened when loaded.
template <class B>
struct TileJob {
  std::int64_t depth;   ///< steps of k
  const float* a;       ///< [rows][a_step], or [depth][tile_rows] along k
  std::int64_t a_step;  ///< copied_stride `in_intervals`
  const B* b;           ///< panel p starts at b + p * panel_stride, its rows are b_step apart
  std::int64_t panel_stride, b_step;
  bool accumulate;
  float* c;
  std::int64_t ldc;
  const float* next;  ///< start of the next tile of C, prefetched
  /// Lines to prefetch, of rows of A for the next copy or of rows of the next panel of B;
  /// ahead_step is 0 when there are none.
  const float* ahead[2];
  std::int64_t ahead_step;
  std::int64_t b_ahead;          ///< distance in elements of the prefetched rows of B
  std::int64_t ahead_every = 1;  ///< `in_intervals`: steps of k from one prefetch to the next
};

/// Whether a tile prefetches B. Few rows are bound by reading it; a single one is bound by
/// bandwidth and loses by more instructions.
template <int rows, int panels>
constexpr bool reads_ahead = rows > 1 && panels > 1;

/// How the elements of A lie that a tile reads in one step of k: rows at any distance, rows that
/// were copied (copied_stride apart), or a copied column of tile_rows elements.
enum class Rows { apart, copied, column };

/// One step of k of a tile of A, moved along k. Rows at any distance are read at 0 to 4 of it from
/// every fifth row, which takes few address registers.
template <int rows, Rows form>
class ColumnOfA {
 public:
  [[gnu::always_inline]] ColumnOfA(const float* a, std::int64_t distance)
      : one_(distance), three_(3 * distance), four_(4 * distance) {
#pragma GCC unroll 4
    for (int i = 0; i < bases; ++i) bases_[i] = a + 5 * i * distance;
  }
  [[gnu::always_inline]] const float* row(int r) const {
    if (form == Rows::column) return bases_[0] + r;
    if (form == Rows::copied) return bases_[0] + r * copied_stride;
    const float* const base = bases_[r / 5];
    switch (r % 5) {
      case 0: return base;
      case 1: return base + one_;
      case 2: return base + 2 * one_;
      case 3: return base + three_;
      default: return base + four_;
    }
  }
  [[gnu::always_inline]] void move() {
#pragma GCC unroll 4
    for (int i = 0; i < bases; ++i) bases_[i] += form == Rows::column ? tile_rows : 1;
  }

 private:
  static constexpr int bases = form == Rows::apart ? (rows + 4) / 5 : 1;
  std::int64_t one_, three_, four_;
  const float* bases_[bases];
};

/// C[rows, panels*panel_width] (+)= A B over `depth` steps of k. Every output is one FMA chain, k
/// ascending. With `in_intervals`, the tile prefetches the lines `ahead` every `ahead_every` steps;
/// without it, tiles of more than half of tile_rows do in every step if A is not along k.
template <int rows, int panels, bool along_k, class B, bool in_intervals = false>
void tile(const TileJob<B>& job) {
  const std::int64_t depth = job.depth, panel_stride = job.panel_stride, b_step = job.b_step,
                     ldc = job.ldc;
  const std::int64_t ahead_step = job.ahead_step, b_ahead = job.b_ahead;
  const float *ahead0 = job.ahead[0], *ahead1 = job.ahead[1];
  constexpr Rows form = along_k ? Rows::column : in_intervals ? Rows::copied : Rows::apart;
  ColumnOfA<rows, form> a(job.a, job.a_step);
  const B* b = job.b;
  float* c = job.c;
  Vector sum[rows][2 * panels];
  const auto start = [&](const auto& value) __attribute__((always_inline)) {
    const float* row = c;
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r, row += ldc)
#pragma GCC unroll 8
      for (int v = 0; v < 2 * panels; ++v) sum[r][v] = value(row + v * lanes);
  };
  if (job.accumulate)
    start([](const float* at) __attribute__((always_inline)) { return load(at); });
  else
    start([](const float*) __attribute__((always_inline)) { return broadcast(0.0f); });
  constexpr bool in_every_step = !in_intervals && !along_k && 2 * rows > tile_rows;
  const auto multiply = [&](std::int64_t from, std::int64_t end) __attribute__((always_inline)) {
#pragma GCC unroll 1
    for (std::int64_t k = from; k < end; ++k, b += b_step, a.move()) {
      if constexpr (in_every_step) {
        __builtin_prefetch(ahead0);
        __builtin_prefetch(ahead1);
        ahead0 += ahead_step;
        ahead1 += ahead_step;
      }
      if constexpr (reads_ahead<rows, panels>)
        for (int v = 0; v < 2 * panels; v += 16 / lanes)
          __builtin_prefetch(b + (v / 2) * panel_stride + (v % 2) * lanes + b_ahead);
      Vector right[2 * panels];
#pragma GCC unroll 8
      for (int v = 0; v < 2 * panels; ++v)
        right[v] = load(b + (v / 2) * panel_stride + (v % 2) * lanes);
#if defined(__AVX512F__)
      // g++ 12 reads B again for each of up to three rows.
      if constexpr (rows == 2 || rows == 3)
#pragma GCC unroll 8
        for (int v = 0; v < 2 * panels; ++v) asm("" : "+v"(right[v]));
#endif
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
        const Vector left = broadcast(*a.row(r));
#pragma GCC unroll 8
        for (int v = 0; v < 2 * panels; ++v) sum[r][v] = multiply_add(left, right[v], sum[r][v]);
      }
    }
  };
  const auto multiply_to = [&](std::int64_t from, std::int64_t end) __attribute__((always_inline)) {
    if constexpr (!in_intervals) {
      multiply(from, end);
      return;
    }
#pragma GCC unroll 1
    while (from < end) {
      __builtin_prefetch(ahead0);
      __builtin_prefetch(ahead1);
      ahead0 += ahead_step;
      ahead1 += ahead_step;
      const std::int64_t stop = from + job.ahead_every < end ? from + job.ahead_every : end;
      multiply(from, stop);
      from = stop;
    }
  };
  const auto prefetch_row = [&](const float* row) __attribute__((always_inline)) {
    for (int v = 0; v < 2 * panels; v += 16 / lanes) __builtin_prefetch(row + v * lanes, 1);
  };
  std::int64_t k = 0;
  if constexpr (prefetches_late) {
    // More lines at once than a core can wait for would delay the loads of A and B.
    constexpr bool spread = !in_intervals && 2 * rows > tile_rows;
    constexpr std::int64_t steps_per_row = 2, last_steps = spread ? 16 + rows * steps_per_row : 48;
    k = depth > last_steps ? depth - last_steps : 0;
    multiply_to(0, k);
    const float* row = job.next;
    int r = 0;
    if constexpr (spread)
      for (; r < rows && k + steps_per_row <= depth; ++r, k += steps_per_row, row += ldc) {
        prefetch_row(row);
        multiply(k, k + steps_per_row);
      }
    for (; r < rows; ++r, row += ldc) prefetch_row(row);
  } else {
    for (int r = 0; r < rows; ++r) prefetch_row(job.next + r * ldc);
  }
  multiply_to(k, depth);
  asm("" : "+r"(c));  // or addresses are computed above and kept in memory
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r, c += ldc)
#pragma GCC unroll 8
    for (int v = 0; v < 2 * panels; ++v) store(c + v * lanes, sum[r][v]);
}

}  // namespace
}  // namespace nmt::kernels
