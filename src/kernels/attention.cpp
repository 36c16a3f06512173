#include "nmt/kernels/attention.h"

#include <cmath>
#include <limits>

#include "nmt/kernels/math.h"
#include "rows.h"

namespace nmt::kernels {
namespace {

float additive_score(std::int64_t n, const float* q, const float* k, const float* v) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < n; ++j) sum += v[j] * math::tanh<float>(q[j] + k[j]);
  return sum;
}

float dot(std::int64_t n, const float* x, const float* y) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < n; ++j) sum += x[j] * y[j];
  return sum;
}

void add_scaled_row(std::int64_t n, float alpha, const float* x, float* y) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) y[j] += alpha * x[j];
}

// Sums run over the sentence's own length and in the order of its positions, so that a longer neighbour changes nothing.
void softmax(std::int64_t n, float* x) {
  float largest = -std::numeric_limits<float>::infinity();
  for (std::int64_t s = 0; s < n; ++s) largest = std::max(largest, x[s]);
  float sum = 0;
  for (std::int64_t s = 0; s < n; ++s) sum += x[s] = math::exp<float>(x[s] - largest);
  for (std::int64_t s = 0; s < n; ++s) x[s] /= sum;
}

}  // namespace

void attention_row_forward(const Attention& a, std::int64_t b, const float* query, float* weights, float* context) {
  const std::int64_t space = a.space / a.heads, width = a.width / a.heads, length = a.lengths[b];
  const float scale = 1.0f / std::sqrt(static_cast<float>(space));
  for (std::int64_t head = 0; head < a.heads; ++head) {
    float* w = weights + head * a.steps;
    const float* q = query + head * space;
    for (std::int64_t s = 0; s < length; ++s) {
      const float* k = a.keys + (s * a.sentences + b) * a.space + head * space;
      w[s] = a.kind == AttentionKind::additive ? additive_score(space, q, k, a.v + head * space) : scale * dot(space, q, k);
    }
    softmax(length, w);
    std::fill(w + length, w + a.steps, 0.0f);
    float* c = context + head * width;
    std::fill_n(c, width, 0.0f);
    for (std::int64_t s = 0; s < length; ++s) add_scaled_row(width, w[s], a.memory + (s * a.sentences + b) * a.width + head * width, c);
  }
}

void attention_row_backward(const Attention& a, std::int64_t b, const float* query, const float* weights, const float* dcontext,
                            float* dquery, float* dkeys, float* dmemory, float* dv, float* temporary) {
  const std::int64_t space = a.space / a.heads, width = a.width / a.heads, length = a.lengths[b];
  const float scale = 1.0f / std::sqrt(static_cast<float>(space));
  std::fill_n(dquery, a.space, 0.0f);
  for (std::int64_t head = 0; head < a.heads; ++head) {
    const float* w = weights + head * a.steps;
    const float* dc = dcontext + head * width;
    float* dw = temporary;
    float mean = 0;
    for (std::int64_t s = 0; s < length; ++s) {
      const std::int64_t at = (s * a.sentences + b) * a.width + head * width;
      dw[s] = dot(width, dc, a.memory + at);
      mean += w[s] * dw[s];
      add_scaled_row(width, w[s], dc, dmemory + at);
    }
    const float* __restrict q = query + head * space;
    float* __restrict dq = dquery + head * space;
    for (std::int64_t s = 0; s < length; ++s) {
      const std::int64_t at = (s * a.sentences + b) * a.space + head * space;
      const float* __restrict k = a.keys + at;
      float* __restrict dk = dkeys + at;
      const float de = w[s] * (dw[s] - mean);
      if (a.kind == AttentionKind::dot) {
        add_scaled_row(space, scale * de, k, dq);
        add_scaled_row(space, scale * de, q, dk);
        continue;
      }
      const float* __restrict v = a.v + head * space;
      float* __restrict dvh = dv + head * space;
#pragma omp simd
      for (std::int64_t j = 0; j < space; ++j) {
        const float y = math::tanh<float>(q[j] + k[j]);
        const float slope = de * v[j] * (1.0f - y * y);
        dvh[j] += de * y;
        dq[j] += slope;
        dk[j] += slope;
      }
    }
  }
}

void attention_forward(const Cpu& cpu, const Attention& a, std::int64_t target_steps, std::int64_t rows, const std::int32_t* sentence,
                       const float* query, float* weights, float* context) {
  Shares(cpu, rows).run(cpu, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)  // a sentence's keys stay near for all its steps
      for (std::int64_t t = 0; t < target_steps; ++t) {
        const std::int64_t at = t * rows + r;
        attention_row_forward(a, sentence ? sentence[r] : r, query + at * a.space, weights + at * a.heads * a.steps, context + at * a.width);
      }
  });
}

std::int64_t attention_scratch(const Cpu& cpu, const Attention& a, std::int64_t) {
  return Shares(cpu, a.sentences).count * (a.space + a.steps);
}

void attention_backward(const Cpu& cpu, const Attention& a, std::int64_t target_steps, const float* query, const float* weights,
                        const AttentionGradient& g) {
  const Shares shares(cpu, a.sentences);
  const std::int64_t stride = a.space + a.steps;
  std::fill_n(g.scratch, shares.count * stride, 0.0f);
  shares.run(cpu, [&](std::int64_t share, std::int64_t begin, std::int64_t end) {
    float* dv = g.scratch + share * stride;
    for (std::int64_t b = begin; b < end; ++b)
      for (std::int64_t t = 0; t < target_steps; ++t) {
        const std::int64_t at = t * a.sentences + b;
        attention_row_backward(a, b, query + at * a.space, weights + at * a.heads * a.steps, g.dcontext + at * a.width,
                               g.dquery + at * a.space, g.dkeys, g.dmemory, dv, dv + a.space);
      }
  });
  add_shares(g.scratch, shares.count, stride, a.space, g.dv);
}

}  // namespace nmt::kernels
