#include "kernels/attention.h"

#include "kernels/attention/quantized_memory.h"
#include "kernels/math.h"
#include "kernels/recurrent/rows.h"
#include "kernels/sums.h"

#include <cmath>
#include <limits>

namespace nmt::kernels {
namespace {

// Channels per block of an additive score; the exponentials of the query stay in the L1 cache.
constexpr std::int64_t chunk = 512;
// e^2(q+k) from which on tanh is 1 in float. The clamp keeps the product of two denominators
// finite.
constexpr float saturated = 1e9f;

inline float clamped(float z) {
  return lesser(saturated, z);
}
inline Vector clamped(Vector z) {
  return lesser(broadcast(saturated), z);
}
// 1 + e^2q e^2k, clamped, of floats or vectors. NaN propagates.
template <class T>
inline T denominator(T exp_q, T exp_k) {
  return 1.0f + clamped(exp_q * exp_k);
}

void exp_twice(std::int64_t n, const float* x, float* y) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) y[j] = math::exp<float>(2.0f * x[j]);
}

// v . tanh(q + k) minus sum(v), which cancels in the softmax. Two channels share a division: v/d +
// w/e = (v e + w d) / (d e).
float additive_score(std::int64_t n, const float* exp_q, const float* exp_k, const float* v) {
  const std::int64_t half = n / 2;
  float sum = sum_terms(half, [=](auto at, std::int64_t j) {
    const auto d = denominator(at(exp_q + j), at(exp_k + j)),
               e = denominator(at(exp_q + j + half), at(exp_k + j + half));
    return (at(v + j) * e + at(v + j + half) * d) / (d * e);
  });
  if (n % 2 != 0) sum += v[n - 1] / denominator(exp_q[n - 1], exp_k[n - 1]);
  return -2.0f * sum;
}

// With r = 1 / (1 + e^2(q+k)): tanh = 1 - 2r and its derivative is 4 r (1 - r). Adds dv -= 2 r de
// (the de of a softmax sum to 0), dq without its factor 4v, and dk.
void additive_score_backward(std::int64_t n, float de, const float* __restrict exp_q,
                             const float* __restrict exp_k, const float* __restrict v4,
                             float* __restrict dv, float* __restrict dq, float* __restrict dk) {
  const std::int64_t half = n / 2;
#pragma omp simd
  for (std::int64_t j = 0; j < half; ++j) {
    const float d = denominator(exp_q[j], exp_k[j]),
                e = denominator(exp_q[j + half], exp_k[j + half]);
    const float inverse = 1.0f / (d * e), r = inverse * e, s = inverse * d;
    const float dr = de * r, ds = de * s, slope_r = dr - dr * r, slope_s = ds - ds * s;
    dv[j] -= 2.0f * dr;
    dv[j + half] -= 2.0f * ds;
    dq[j] += slope_r;
    dq[j + half] += slope_s;
    dk[j] += v4[j] * slope_r;
    dk[j + half] += v4[j + half] * slope_s;
  }
  if (n % 2 == 0) return;
  const std::int64_t j = n - 1;
  const float r = 1.0f / denominator(exp_q[j], exp_k[j]), slope = de * r - de * r * r;
  dv[j] -= 2.0f * de * r;
  dq[j] += slope;
  dk[j] += v4[j] * slope;
}

void add_scaled_row(std::int64_t n, float alpha, const float* x, float* y) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) y[j] += alpha * x[j];
}

// One sentence is enough work for a thread when it has several queries.
Shares shares_of(const Cpu& cpu, std::int64_t rows, std::int64_t target_steps) {
  return {cpu, rows, target_steps >= 4 ? 1 : 4};
}

// Sums run over the sentence's own length in order of position, so padding does not change the
// result. softmax_row() (attention/softmax_row.h) is faster and rounds otherwise; models of earlier
// versions have these sums (tests/golden).
void softmax(std::int64_t n, float* x) {
  float largest = -std::numeric_limits<float>::infinity();
  for (std::int64_t s = 0; s < n; ++s) largest = std::max(largest, x[s]);
  float sum = 0;
  for (std::int64_t s = 0; s < n; ++s) sum += x[s] = math::exp<float>(x[s] - largest);
  for (std::int64_t s = 0; s < n; ++s) x[s] /= sum;
}

}  // namespace

// Keys and memory are read position by position, all heads of one at a time: their rows lie far
// apart, and each is read from its beginning to its end.
void attention_row_forward(const Attention& a, std::int64_t b, const float* query, float* weights,
                           float* context) {
  if (a.quantized) return quantized_row_forward(a, b, query, weights, context);
  const std::int64_t space = a.space / a.heads, width = a.width / a.heads, length = a.lengths[b];
  const float scale = 1.0f / std::sqrt(static_cast<float>(space));
  if (a.kind == AttentionKind::dot)
    for (std::int64_t s = 0; s < length; ++s)
      for (std::int64_t head = 0; head < a.heads; ++head)
        weights[head * a.steps + s] =
            scale * dot(space, query + head * space,
                        a.keys + (s * a.sentences + b) * a.space + head * space);
  for (std::int64_t head = 0; head < a.heads; ++head) {
    float* w = weights + head * a.steps;
    if (a.kind != AttentionKind::dot)
      for (std::int64_t first = 0; first < space; first += chunk) {
        const std::int64_t n = std::min(chunk, space - first), at = head * space + first;
        float exp_q[chunk];
        exp_twice(n, query + at, exp_q);
        for (std::int64_t s = 0; s < length; ++s)
          w[s] =
              (first == 0 ? 0.0f : w[s]) +
              additive_score(n, exp_q, a.exp_keys + (s * a.sentences + b) * a.space + at, a.v + at);
      }
    softmax(length, w);
    std::fill(w + length, w + a.steps, 0.0f);
  }
  std::fill_n(context, a.width, 0.0f);
  for (std::int64_t s = 0; s < length; ++s)
    for (std::int64_t head = 0; head < a.heads; ++head)
      add_scaled_row(width, weights[head * a.steps + s],
                     a.memory + (s * a.sentences + b) * a.width + head * width,
                     context + head * width);
}

namespace {

// The derivative of the cost by the scores, softmax s: weight (sum of the targets * s - target).
void add_link_gradient(const AttentionLinks& links, std::int64_t row, std::int64_t length,
                       const float* weights, float* dscores) {
  const std::int32_t begin = links.offsets[row], end = links.offsets[row + 1];
  if (begin == end) return;
  const float target = links.weight / static_cast<float>(end - begin);
  for (std::int64_t s = 0; s < length; ++s) dscores[s] += links.weight * weights[s];
  for (std::int32_t i = begin; i < end; ++i) dscores[links.sources[i]] -= target;
}

}  // namespace

void attention_row_backward(const Attention& a, std::int64_t b, std::int64_t row,
                            const float* query, const float* weights, const float* dcontext,
                            float* dquery, float* dkeys, float* dmemory, float* dv,
                            float* temporary) {
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
    const float* q = query + head * space;
    float* dq = dquery + head * space;
    for (std::int64_t s = 0; s < length; ++s)
      dw[s] = w[s] * (dw[s] - mean);  // from here on the gradient of the scores
    if (a.links.offsets && head == a.links.head) add_link_gradient(a.links, row, length, w, dw);
    const auto key = [&](auto* keys, std::int64_t s) {
      return keys + (s * a.sentences + b) * a.space + head * space;
    };
    if (a.kind == AttentionKind::dot) {
      for (std::int64_t s = 0; s < length; ++s) {
        add_scaled_row(space, scale * dw[s], key(a.keys, s), dq);
        add_scaled_row(space, scale * dw[s], q, key(dkeys, s));
      }
      continue;
    }
    for (std::int64_t first = 0; first < space; first += chunk) {
      const std::int64_t n = std::min(chunk, space - first);
      float exp_q[chunk], v4[chunk];
      exp_twice(n, q + first, exp_q);
      for (std::int64_t j = 0; j < n; ++j) v4[j] = 4.0f * a.v[head * space + first + j];
      for (std::int64_t s = 0; s < length; ++s)
        additive_score_backward(n, dw[s], exp_q, key(a.exp_keys, s) + first, v4,
                                dv + head * space + first, dq + first, key(dkeys, s) + first);
      for (std::int64_t j = 0; j < n; ++j) dq[first + j] *= v4[j];
    }
  }
}

void attention_exp_keys(const Cpu& cpu, std::int64_t n, const float* keys, float* to) {
  cpu.pool->parallel_for(n, 4096, [&](std::int64_t begin, std::int64_t end) {
    exp_twice(end - begin, keys + begin, to + begin);
  });
}

void attention_forward(const Cpu& cpu, const Attention& a, std::int64_t target_steps,
                       std::int64_t rows, const std::int32_t* sentence, const float* query,
                       float* weights, float* context) {
  shares_of(cpu, rows, target_steps)
      .run(cpu, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end;
             // The keys of a sentence stay in the cache for all its steps.
             ++r)
          for (std::int64_t t = 0; t < target_steps; ++t) {
            const std::int64_t at = t * rows + r;
            attention_row_forward(a, sentence ? sentence[r] : r, query + at * a.space,
                                  weights + at * a.heads * a.steps, context + at * a.width);
          }
      });
}

void attention_link_cost(const Cpu& cpu, const AttentionLinks& links, std::int64_t rows,
                         std::int64_t heads, std::int64_t steps, const float* weights,
                         double* scratch, double* sum) {
  cpu.pool->parallel_for(rows, 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      scratch[row] = link_cost_of_row(links, row, weights + (row * heads + links.head) * steps);
  });
  for (std::int64_t row = 0; row < rows; ++row) *sum += scratch[row];
}

std::int64_t attention_scratch(const Cpu& cpu, const Attention& a, std::int64_t target_steps) {
  return shares_of(cpu, a.sentences, target_steps).count * (a.space + a.steps);
}

void attention_backward(const Cpu& cpu, const Attention& a, std::int64_t target_steps,
                        const float* query, const float* weights, const AttentionGradient& g) {
  const Shares shares = shares_of(cpu, a.sentences, target_steps);
  const std::int64_t stride = a.space + a.steps;
  std::fill_n(g.scratch, shares.count * stride, 0.0f);
  shares.run(cpu, [&](std::int64_t share, std::int64_t begin, std::int64_t end) {
    float* dv = g.scratch + share * stride;
    for (std::int64_t b = begin; b < end; ++b)
      for (std::int64_t t = 0; t < target_steps; ++t) {
        const std::int64_t at = t * a.sentences + b;
        attention_row_backward(a, b, at, query + at * a.space, weights + at * a.heads * a.steps,
                               g.dcontext + at * a.width, g.dquery + at * a.space, g.dkeys,
                               g.dmemory, dv, dv + a.space);
      }
  });
  add_shares(g.scratch, shares.count, stride, a.space, g.dv);
}

}  // namespace nmt::kernels
