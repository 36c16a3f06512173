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

namespace {

// Independent accumulators, split evenly over the streams.
constexpr int vectors = 8;

template <int streams>
float sum_of(const float* x, std::int64_t n) {
  constexpr int together = vectors / streams;
  const std::int64_t apart = n / streams / (together * lanes) * (together * lanes);
  Vector part[vectors];
  for (int i = 0; i < vectors; ++i) part[i] = broadcast(0.0f);
  const Vector one = broadcast(1.0f);
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
  for (std::int64_t at = streams * apart; at < n; ++at) total += x[at];
  return total;
}

}  // namespace

std::int64_t run_read_loop(const float* x, std::int64_t n, int streams, float* sum) {
  NMT_CHECK(streams == 1 || streams == 4 || streams == 8,
            "a read loop of {} streams, expected 1, 4 or 8", streams);
  *sum = streams == 1 ? sum_of<1>(x, n) : streams == 4 ? sum_of<4>(x, n) : sum_of<8>(x, n);
  return n * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace nmt::app::bench
