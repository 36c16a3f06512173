#include "kernels/self_attention.h"

#include "core/threads/thread_pool.h"
#include "kernels/attention/softmax_row.h"
#include "kernels/sums.h"

#include <algorithm>
#include <cmath>

namespace nmt::kernels {
namespace {

float scale_of(const SelfAttention& a) {
  return 1.0f / std::sqrt(static_cast<float>(a.size));
}

void softmax_row_backward(std::int64_t length, float scale, const float* w, float* dw) {
  const float mean = dot(length, w, dw);
#pragma omp simd
  for (std::int64_t s = 0; s < length; ++s) dw[s] = scale * w[s] * (dw[s] - mean);
}

// Calls body(row, length) for every query of every head; length is 0 for padded queries.
template <class Body>
void for_each_query(const Cpu& cpu, const SelfAttention& a, Body&& body) {
  cpu.pool->parallel_for(a.groups(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t group = begin; group < end; ++group) {
      const std::int64_t length = a.lengths[group / a.heads];
      for (std::int64_t t = 0; t < a.steps; ++t)
        body((group * a.steps + t) * a.steps, t < length ? length : 0);
    }
  });
}

}  // namespace

void self_attention_softmax(const Cpu& cpu, const SelfAttention& a, float* scores) {
  for_each_query(cpu, a, [&, scale = scale_of(a)](std::int64_t row, std::int64_t length) {
    if (length > 0) softmax_row(length, scale, scores + row);
    std::fill(scores + row + length, scores + row + a.steps, 0.0f);
  });
}

void self_attention_softmax_backward(const Cpu& cpu, const SelfAttention& a, const float* weights,
                                     float* gradient) {
  for_each_query(cpu, a, [&, scale = scale_of(a)](std::int64_t row, std::int64_t length) {
    softmax_row_backward(length, scale, weights + row, gradient + row);
    std::fill(gradient + row + length, gradient + row + a.steps, 0.0f);
  });
}

void rotate(const Cpu& cpu, const SelfAttention& a, const float* turns, bool back, const float* x,
            float* y) {
  const std::int64_t half = a.size / 2;
  cpu.pool->parallel_for(a.steps * a.sentences, 16, [=](std::int64_t begin, std::int64_t end) {
    const float sign = back ? -1.0f : 1.0f;
    for (std::int64_t part = 3 * a.heads * begin; part < 3 * a.heads * end; ++part) {
      const float *from = x + part * a.size, *cosine = turns + part / (3 * a.groups()) * a.size,
                  *sine = cosine + half;
      float* to = y + part * a.size;
      if (part % 3 == 2) {
        if (to != from) std::copy_n(from, a.size, to);
        continue;
      }
#pragma omp simd
      for (std::int64_t i = 0; i < half; ++i) {
        const float u = from[i], v = from[half + i];
        to[i] = u * cosine[i] - sign * v * sine[i];
        to[half + i] = v * cosine[i] + sign * u * sine[i];
      }
    }
  });
}

}  // namespace nmt::kernels
