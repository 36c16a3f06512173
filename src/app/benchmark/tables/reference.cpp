#include "app/benchmark/tables/reference.h"

#include "core/error.h"
#include "kernels/recurrent/unit.h"
#include "units/all.h"

#include <algorithm>
#include <cmath>

namespace nmt::app::bench {
namespace {

// to[n] += from[k] W[k,n], W a part of a matrix with rows of `stride`.
void add_product(const double* from, std::int64_t k, const double* w, std::int64_t stride,
                 std::int64_t n, double* to) {
  for (std::int64_t i = 0; i < k; ++i)
    for (std::int64_t j = 0; j < n; ++j) to[j] += from[i] * w[i * stride + j];
}

template <class U>
Doubles run(const SentenceRecurrence& s) {
  using namespace units;
  constexpr int position_vectors = position_vectors_of<U>;
  const std::int64_t h = s.width, wide = (U::recurrents + U::late) * h;
  std::vector<Step<double, U>> channels(static_cast<std::size_t>(h));
  for (Step<double, U>& step : channels) {
    step = {};
    for (int p = 0; p < U::states; ++p) step.s[p] = kernels::units()[s.unit].state_start(p);
  }
  Doubles out(static_cast<std::size_t>(s.steps * h)), before(static_cast<std::size_t>(h)), u,
      value(before);
  for (std::int64_t i = 0; i < s.steps; ++i) {
    const std::int64_t t = s.reverse ? s.steps - 1 - i : i;
    if (s.bias.empty())
      u.assign(static_cast<std::size_t>(wide), 0.0);
    else
      u = s.bias;
    for (std::int64_t j = 0; j < h; ++j)
      before[static_cast<std::size_t>(j)] = channels[static_cast<std::size_t>(j)].s[0];
    if (U::recurrents > 0)
      add_product(before.data(), h, s.recurrent.data(), wide, U::recurrents * h, u.data());
    for (std::int64_t j = 0; j < h; ++j) {
      Step<double, U>& step = channels[static_cast<std::size_t>(j)];
      for (int p = 0; p < U::inputs; ++p)
        step.x[p] = s.x[static_cast<std::size_t>((t * U::inputs + p) * h + j)];
      for (int p = 0; p < U::recurrents; ++p) step.u[p] = u[static_cast<std::size_t>(p * h + j)];
      for (int p = 0; p < U::vectors; ++p)
        step.v[p] = s.vectors[static_cast<std::size_t>(p * h + j)];
      for (int p = 0; p < position_vectors; ++p)
        step.position[p] =
            s.positions[static_cast<std::size_t>((t * position_vectors + p) * h + j)];
      if constexpr (U::late > 0) value[static_cast<std::size_t>(j)] = U::late_value(step);
    }
    if (U::late > 0)
      add_product(value.data(), h, s.recurrent.data() + U::recurrents * h, wide, U::late * h,
                  u.data() + U::recurrents * h);
    for (std::int64_t j = 0; j < h; ++j) {
      Step<double, U>& step = channels[static_cast<std::size_t>(j)];
      for (int p = 0; p < U::late; ++p)
        step.late[p] = u[static_cast<std::size_t>((U::recurrents + p) * h + j)];
      double next[U::states];
      U::forward(step, next);
      std::copy_n(next, U::states, step.s);
      out[static_cast<std::size_t>(t * h + j)] = next[0];
    }
  }
  return out;
}

using namespace units;
using Run = Doubles (*)(const SentenceRecurrence&);
constexpr Run runs[] = {
#define NMT_UNIT(name, variant, ...) run<__VA_ARGS__>,
#include "units/units.def"
#undef NMT_UNIT
};

}  // namespace

Doubles run_recurrence(const SentenceRecurrence& sentence) {
  return runs[sentence.unit](sentence);
}

Doubles run_attention(const SentenceAttention& s) {
  const std::int64_t part = s.space / s.heads, slice = s.width / s.heads;
  Doubles out(static_cast<std::size_t>(s.queries * s.width)),
      scores(static_cast<std::size_t>(s.steps));
  for (std::int64_t t = 0; t < s.queries; ++t)
    for (std::int64_t head = 0; head < s.heads; ++head) {
      for (std::int64_t i = 0; i < s.steps; ++i) {
        double score = 0;
        for (std::int64_t j = head * part; j < (head + 1) * part; ++j) {
          const double q = s.query[static_cast<std::size_t>(t * s.space + j)],
                       k = s.keys[static_cast<std::size_t>(i * s.space + j)];
          score += s.additive ? s.v[static_cast<std::size_t>(j)] * std::tanh(q + k) : q * k;
        }
        scores[static_cast<std::size_t>(i)] =
            s.additive ? score : score / std::sqrt(static_cast<double>(part));
      }
      const double max_score = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (double& score : scores) sum += score = std::exp(score - max_score);
      for (std::int64_t i = 0; i < s.steps; ++i)
        for (std::int64_t j = head * slice; j < (head + 1) * slice; ++j)
          out[static_cast<std::size_t>(t * s.width + j)] +=
              scores[static_cast<std::size_t>(i)] / sum *
              s.memory[static_cast<std::size_t>(i * s.width + j)];
    }
  return out;
}

}  // namespace nmt::app::bench
