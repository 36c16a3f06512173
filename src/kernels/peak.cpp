#include "nmt/kernels/peak.h"

#include "tile.h"

namespace nmt::kernels {

std::int64_t multiply_add_loop(std::int64_t rounds) {
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

std::int64_t read_loop(const float* x, std::int64_t n, float* sum) {
  constexpr int streams = 8;
  Vector part[streams];
  for (int i = 0; i < streams; ++i) part[i] = broadcast(0.0f);
  const Vector one = broadcast(1.0f);
  std::int64_t at = 0;
  for (; at + streams * lanes <= n; at += streams * lanes)
#pragma GCC unroll 8
    for (int i = 0; i < streams; ++i) part[i] = multiply_add(one, load(x + at + i * lanes), part[i]);
  float total = 0, out[lanes];
  for (int i = 0; i < streams; ++i) {
    store(out, part[i]);
    for (int l = 0; l < lanes; ++l) total += out[l];
  }
  for (; at < n; ++at) total += x[at];
  *sum = total;
  return n * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace nmt::kernels
