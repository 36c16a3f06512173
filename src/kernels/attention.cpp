#include "kernels/attention.h"

#include "kernels/attention/quantized_memory.h"
#include "kernels/math.h"
#include "kernels/recurrent/rows.h"
#include "kernels/sums.h"

#include <cmath>
#include <limits>
#include <span>

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
RowShares shares_of(const Cpu& cpu, std::int64_t rows, std::int64_t target_steps) {
  return {cpu, rows, target_steps >= 4 ? 1 : 4};
}

// Sums run over the sentence's own length in order of position, so padding does not change the
// result. softmax_row() (attention/softmax_row.h) is faster and rounds otherwise; models of earlier
// versions have these sums (tests/golden).
void softmax(std::int64_t n, float* x) {
  float largest = -std::numeric_limits<float>::infinity();
  for (std::int64_t s = 0; s < n; ++s) largest = std::max(largest, x[s]);
  float sum = 0;
  for (std::int64_t s = 0; s < n; ++s) sum += x[s] = math::exp_of_negative<float>(x[s] - largest);
  for (std::int64_t s = 0; s < n; ++s) x[s] /= sum;
}

}  // namespace

namespace {

/// Queries of a sentence that read each row of its keys and memory in turn, while it is in the
/// first-level cache. Every number is computed as for a single query, to the bit.
constexpr std::int64_t together = 4;

struct Query {
  const float* query;
  float *weights, *context;
};

// Keys and memory are read position by position, all heads of one at a time: their rows lie far
// apart, and each is read from its beginning to its end.
void rows_forward(const Attention& a, std::int64_t b, std::span<const Query> queries) {
  const std::int64_t space = a.space / a.heads, width = a.width / a.heads, length = a.lengths[b];
  const float scale = 1.0f / std::sqrt(static_cast<float>(space));
  if (a.kind == AttentionKind::dot)
    for (std::int64_t s = 0; s < length; ++s)
      for (std::int64_t head = 0; head < a.heads; ++head)
        for (const Query& q : queries)
          q.weights[head * a.steps + s] =
              scale * dot(space, q.query + head * space,
                          a.keys + (s * a.sentences + b) * a.space + head * space);
  for (std::int64_t head = 0; head < a.heads; ++head) {
    if (a.kind != AttentionKind::dot)
      for (std::int64_t first = 0; first < space; first += chunk) {
        const std::int64_t n = std::min(chunk, space - first), at = head * space + first;
        float exp_q[together][chunk];
        for (std::size_t i = 0; i < queries.size(); ++i)
          exp_twice(n, queries[i].query + at, exp_q[i]);
        for (std::int64_t s = 0; s < length; ++s)
          for (std::size_t i = 0; i < queries.size(); ++i) {
            float& w = queries[i].weights[head * a.steps + s];
            w = (first == 0 ? 0.0f : w) +
                additive_score(n, exp_q[i], a.exp_keys + (s * a.sentences + b) * a.space + at,
                               a.v + at);
          }
      }
    for (const Query& q : queries) {
      float* const w = q.weights + head * a.steps;
      softmax(length, w);
      std::fill(w + length, w + a.steps, 0.0f);
    }
  }
  for (const Query& q : queries) std::fill_n(q.context, a.width, 0.0f);
  for (std::int64_t s = 0; s < length; ++s)
    for (std::int64_t head = 0; head < a.heads; ++head)
      for (const Query& q : queries)
        add_scaled_row(width, q.weights[head * a.steps + s],
                       a.memory + (s * a.sentences + b) * a.width + head * width,
                       q.context + head * width);
}

}  // namespace

void attention_row_forward(const Attention& a, std::int64_t b, const float* query, float* weights,
                           float* context) {
  if (a.quantized) return quantized_row_forward(a, b, query, weights, context);
  const Query one{query, weights, context};
  rows_forward(a, b, {&one, 1});
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

namespace {

struct QueryGradient {
  std::int64_t row;  ///< in [T,B]
  const float *query, *weights, *dcontext;
  float* dquery;
  float* dscores;  ///< [S], of one head
};

// Rows of keys and memory that the queries read in turn, as in rows_forward(); but for additive
// scores, whose gradient of v is a sum over queries and then positions.
void rows_backward(const Attention& a, std::int64_t b, std::span<const QueryGradient> queries,
                   float* dkeys, float* dmemory, float* dv) {
  const std::int64_t space = a.space / a.heads, width = a.width / a.heads, length = a.lengths[b];
  const float scale = 1.0f / std::sqrt(static_cast<float>(space));
  for (const QueryGradient& q : queries) std::fill_n(q.dquery, a.space, 0.0f);
  for (std::int64_t head = 0; head < a.heads; ++head) {
    float mean[together] = {};
    for (std::int64_t s = 0; s < length; ++s) {
      const std::int64_t at = (s * a.sentences + b) * a.width + head * width;
      for (std::size_t i = 0; i < queries.size(); ++i) {
        const QueryGradient& q = queries[i];
        const float* const dc = q.dcontext + head * width;
        const float w = q.weights[head * a.steps + s];
        q.dscores[s] = dot(width, dc, a.memory + at);
        mean[i] += w * q.dscores[s];
        add_scaled_row(width, w, dc, dmemory + at);
      }
    }
    for (std::size_t i = 0; i < queries.size(); ++i) {
      const QueryGradient& q = queries[i];
      const float* const w = q.weights + head * a.steps;
      for (std::int64_t s = 0; s < length; ++s) q.dscores[s] = w[s] * (q.dscores[s] - mean[i]);
      if (a.links.offsets && head == a.links.head)
        add_link_gradient(a.links, q.row, length, w, q.dscores);
    }
    const auto key = [&](auto* keys, std::int64_t s) {
      return keys + (s * a.sentences + b) * a.space + head * space;
    };
    if (a.kind == AttentionKind::dot) {
      for (std::int64_t s = 0; s < length; ++s)
        for (const QueryGradient& q : queries) {
          add_scaled_row(space, scale * q.dscores[s], key(a.keys, s), q.dquery + head * space);
          add_scaled_row(space, scale * q.dscores[s], q.query + head * space, key(dkeys, s));
        }
      continue;
    }
    for (const QueryGradient& q : queries)
      for (std::int64_t first = 0; first < space; first += chunk) {
        const std::int64_t n = std::min(chunk, space - first), at = head * space + first;
        float exp_q[chunk], v4[chunk];
        exp_twice(n, q.query + at, exp_q);
        for (std::int64_t j = 0; j < n; ++j) v4[j] = 4.0f * a.v[at + j];
        float* const dq = q.dquery + at;
        for (std::int64_t s = 0; s < length; ++s)
          additive_score_backward(n, q.dscores[s], exp_q, key(a.exp_keys, s) + first, v4, dv + at,
                                  dq, key(dkeys, s) + first);
        for (std::int64_t j = 0; j < n; ++j) dq[j] *= v4[j];
      }
  }
}

}  // namespace

void attention_row_backward(const Attention& a, std::int64_t b, std::int64_t row,
                            const float* query, const float* weights, const float* dcontext,
                            float* dquery, float* dkeys, float* dmemory, float* dv,
                            float* temporary) {
  const QueryGradient one{row, query, weights, dcontext, dquery, temporary};
  rows_backward(a, b, {&one, 1}, dkeys, dmemory, dv);
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
             // The keys of a sentence stay in the second-level cache for all its steps.
             ++r)
          for (std::int64_t first = 0; first < target_steps; first += together) {
            const std::int64_t count = std::min(together, target_steps - first);
            Query queries[together];
            for (std::int64_t i = 0; i < count; ++i) {
              const std::int64_t at = (first + i) * rows + r;
              queries[i] = {query + at * a.space, weights + at * a.heads * a.steps,
                            context + at * a.width};
            }
            const std::int64_t b = sentence ? sentence[r] : r;
            if (!a.quantized)
              rows_forward(a, b, {queries, static_cast<std::size_t>(count)});
            else
              for (std::int64_t i = 0; i < count; ++i)
                quantized_row_forward(a, b, queries[i].query, queries[i].weights,
                                      queries[i].context);
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
  return shares_of(cpu, a.sentences, target_steps).count * (a.space + together * a.steps);
}

void attention_backward(const Cpu& cpu, const Attention& a, std::int64_t target_steps,
                        const float* query, const float* weights, const AttentionGradient& g) {
  const RowShares shares = shares_of(cpu, a.sentences, target_steps);
  const std::int64_t stride = a.space + together * a.steps;
  std::fill_n(g.scratch, shares.count * stride, 0.0f);
  shares.run(cpu, [&](std::int64_t share, std::int64_t begin, std::int64_t end) {
    float* dv = g.scratch + share * stride;
    for (std::int64_t b = begin; b < end; ++b)
      for (std::int64_t first = 0; first < target_steps; first += together) {
        const std::int64_t count = std::min(together, target_steps - first);
        QueryGradient queries[together];
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int64_t at = (first + i) * a.sentences + b;
          queries[i] = {at,
                        query + at * a.space,
                        weights + at * a.heads * a.steps,
                        g.dcontext + at * a.width,
                        g.dquery + at * a.space,
                        dv + a.space + i * a.steps};
        }
        rows_backward(a, b, {queries, static_cast<std::size_t>(count)}, g.dkeys, g.dmemory, dv);
      }
  });
  add_shares(g.scratch, shares.count, stride, a.space, g.dv);
}

}  // namespace nmt::kernels
