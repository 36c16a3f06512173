#include "kernels/optimizer.h"

#include "core/threads/thread_pool.h"

#include <algorithm>
#include <cmath>

namespace nmt::kernels {
namespace {

constexpr std::int64_t grain = 4096;

std::int64_t elements(const OptimizerSlice* slices, std::int64_t count) {
  std::int64_t n = 0;
  for (std::int64_t s = 0; s < count; ++s) n += slices[s].n;
  return n;
}

// Calls `body` for the parts of the slices that make up elements [begin, end) of their
// concatenation.
template <class Body>
void for_pieces(const OptimizerSlice* slices, std::int64_t count, std::int64_t begin,
                std::int64_t end, Body&& body) {
  std::int64_t start = 0;
  for (std::int64_t s = 0; s < count && start < end; start += slices[s].n, ++s) {
    const std::int64_t from = begin > start ? begin - start : 0;
    const std::int64_t to = end - start < slices[s].n ? end - start : slices[s].n;
    if (from < to) body(slices[s], from, to);
  }
}

template <class Rule>
void update_piece(const OptimizerSlice& slice, std::int64_t begin, std::int64_t end,
                  const Rule& step, float factor) {
  const Rule rule = step;  // a local copy keeps its members in registers
  float* const value = slice.value;
  float* const gradient = slice.gradient;
  float* const first = slice.first;
  float* const second = slice.second;
#pragma omp simd
  for (std::int64_t i = begin; i < end; ++i) {
    const float g = gradient[i] * factor;
    float unused = 0.0f;
    if constexpr (Rule::states == 2)
      rule(g, value[i], first[i], second[i]);
    else if constexpr (Rule::states == 1)
      rule(g, value[i], first[i], unused);
    else
      rule(g, value[i], unused, unused);
  }
}

template <class Rule>
void update_slice(const OptimizerSlice& slice, std::int64_t begin, std::int64_t end,
                  const Rule& step, float factor) {
  constexpr std::int64_t part = 2048;  // the values are still in the L1 cache
  for (std::int64_t at = begin; at < end; at += part) {
    const std::int64_t stop = end - at < part ? end : at + part;
    update_piece(slice, at, stop, step, factor);
    if (!slice.keeps_gradient) std::fill(slice.gradient + at, slice.gradient + stop, 0.0f);
    if (!slice.average || step.smoothing == 0.0f) continue;
    float* const average = slice.average;
    const float* const value = slice.value;
    const float smoothing = step.smoothing;
#pragma omp simd
    for (std::int64_t i = at; i < stop; ++i) average[i] += smoothing * (value[i] - average[i]);
  }
}

template <class Rule>
void update(const Cpu& cpu, const OptimizerSlice* slices, std::int64_t count, const Rule& step) {
  const float factor = step.gradient_factor ? *step.gradient_factor : 1.0f;
  cpu.pool->parallel_for(elements(slices, count), grain, [&](std::int64_t begin, std::int64_t end) {
    for_pieces(slices, count, begin, end,
               [&](const OptimizerSlice& slice, std::int64_t from, std::int64_t to) {
                 if (!std::isnan(factor))
                   update_slice(slice, from, to, step, factor);
                 else if (!slice.keeps_gradient)
                   std::fill(slice.gradient + from, slice.gradient + to, 0.0f);
               });
  });
}

// Element i is added to partial sum i mod 16 on every instruction set.
double sum_of_squares(std::int64_t n, const float* x) {
  constexpr int parts = 16;
  double partial[parts] = {};
  std::int64_t i = 0;
  for (; i + parts <= n; i += parts)
#pragma omp simd
    for (int p = 0; p < parts; ++p)
      partial[p] += static_cast<double>(x[i + p]) * static_cast<double>(x[i + p]);
  for (int p = 0; i < n; ++p, ++i)
    partial[p] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  double sum = 0;
  for (const double part : partial) sum += part;
  return sum;
}

}  // namespace

void gradient_norm_squared(const Cpu& cpu, const OptimizerSlice* slices, std::int64_t count,
                           double* result) {
  // The number of parts depends only on the size, and parts are added in order, so the sum does not
  // depend on the number of threads.
  constexpr std::int64_t most = 256;
  double sums[most] = {};
  const std::int64_t n = elements(slices, count), parts = n < 4 * grain ? 1 : most;
  cpu.pool->parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part)
      for_pieces(slices, count, n * part / parts, n * (part + 1) / parts,
                 [&](const OptimizerSlice& slice, std::int64_t from, std::int64_t to) {
                   const float* const gradient = slice.gradient;
                   sums[part] += sum_of_squares(to - from, gradient + from);
                 });
  });
  *result = 0;
  for (double sum : sums) *result += sum;
}

void clip(const Cpu&, const double* squares, double scale, double limit, float* factor) {
  *factor = clipping_factor(*squares, scale, limit);
}

void adam(const Cpu& cpu, const OptimizerSlice* slices, std::int64_t count, const AdamStep& step) {
  update(cpu, slices, count, step);
}
void adadelta(const Cpu& cpu, const OptimizerSlice* slices, std::int64_t count,
              const AdadeltaStep& step) {
  update(cpu, slices, count, step);
}
void adagrad(const Cpu& cpu, const OptimizerSlice* slices, std::int64_t count,
             const AdagradStep& step) {
  update(cpu, slices, count, step);
}
void sgd(const Cpu& cpu, const OptimizerSlice* slices, std::int64_t count, const SgdStep& step) {
  update(cpu, slices, count, step);
}
void momentum(const Cpu& cpu, const OptimizerSlice* slices, std::int64_t count,
              const MomentumStep& step) {
  update(cpu, slices, count, step);
}

}  // namespace nmt::kernels
