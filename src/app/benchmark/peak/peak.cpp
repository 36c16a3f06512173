#include "app/benchmark/peak/peak.h"

#include "core/error.h"
#include "kernels/products/tile.h"

namespace nmt::app::bench {

using namespace kernels;

std::int64_t run_fma_loop(std::int64_t rounds) {
  constexpr int chains = 12, unrolled = 4;
  Vector sum[chains];
  for (int i = 0; i < chains; ++i) sum[i] = broadcast(static_cast<float>(i));
  Vector factor = broadcast(0.5f), term = broadcast(1.0f);
  for (std::int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 4
    for (int u = 0; u < unrolled; ++u)
#pragma GCC unroll 12
      for (int i = 0; i < chains; ++i) sum[i] = multiply_add(factor, sum[i], term);
  float out[lanes];
  for (int i = 1; i < chains; ++i) sum[0] = multiply_add(factor, sum[i], sum[0]);
  store(out, sum[0]);
  asm volatile("" : : "g"(out) : "memory");
  return rounds * unrolled * chains * lanes * 2;
}

std::int64_t run_tile_loop(std::int64_t rounds, float* sum) {
  constexpr int depth = stretch / 2;  // both operands and C fit into 32 KB
  alignas(64) float a[tile_rows * copied_stride], b[depth * panel_width],
      c[tile_rows * panel_width];
  for (float& x : a) x = 1;
  for (float& x : b) x = 1;
  const TileJob<float> job = {depth,       a, copied_stride, b, 0, panel_width, false, c,
                              panel_width, c, {a, a},        0, 0};
  for (std::int64_t round = 0; round < rounds; ++round) {
    tile<tile_rows, 1, false>(job);
    asm volatile("" : : "r"(a), "r"(b), "r"(c) : "memory");  // or it would be computed once
  }
  *sum = c[0];
  return rounds * depth * tile_rows * panel_width * 2;
}

namespace {

// Independent accumulators, split evenly over the streams.
constexpr int vectors = 8;

template <int streams>
float sum_of(const float* x, std::int64_t n, std::int64_t times) {
  constexpr int together = vectors / streams;
  const std::int64_t apart = n / streams / (together * lanes) * (together * lanes);
  Vector part[vectors];
  for (int i = 0; i < vectors; ++i) part[i] = broadcast(0.0f);
  const Vector one = broadcast(1.0f);
  for (std::int64_t time = 0; time < times; ++time)
    for (std::int64_t at = 0; at < apart; at += together * lanes)
#pragma GCC unroll 8
      for (int i = 0; i < vectors; ++i)
        part[i] =
            multiply_add(one, load(x + i / together * apart + at + i % together * lanes), part[i]);
  float total = 0, out[lanes];
  for (int i = 0; i < vectors; ++i) {
    store(out, part[i]);
    for (int l = 0; l < lanes; ++l) total += out[l];
  }
  for (std::int64_t time = 0; time < times; ++time)
    for (std::int64_t at = streams * apart; at < n; ++at) total += x[at];
  return total;
}

}  // namespace

std::int64_t run_read_loop(const float* x, std::int64_t n, int streams, std::int64_t times,
                           float* sum) {
  NMT_CHECK(streams == 1 || streams == 4 || streams == 8,
            "a read loop of {} streams, expected 1, 4 or 8", streams);
  *sum = streams == 1   ? sum_of<1>(x, n, times)
         : streams == 4 ? sum_of<4>(x, n, times)
                        : sum_of<8>(x, n, times);
  return times * n * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace nmt::app::bench
