#pragma once

// A reference implementation of the drivers in double, without any of their code: naive products,
// layer normalization, masks, attention. Only the pointwise step uses the header of the unit, in
// double; tests/kernels/unit_test.cpp checks that against the equations of the papers.

#include "units/all.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace nmt::test {

using Row = std::vector<double>;

/// x [rows,k] times w [k,n].
inline Row product(const Row& x, const Row& w, std::size_t k, std::size_t n) {
  Row y(x.size() / k * n);
  for (std::size_t r = 0; r < x.size() / k; ++r)
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::size_t i = 0; i < k; ++i) sum += x[r * k + i] * w[i * n + j];
      y[r * n + j] = sum;
    }
  return y;
}

inline void normalize(double* x, std::size_t n, const double* gain, const double* norm_bias) {
  double mean = 0, variance = 0;
  for (std::size_t i = 0; i < n; ++i) mean += x[i] / n;
  for (std::size_t i = 0; i < n; ++i) variance += (x[i] - mean) * (x[i] - mean) / n;
  for (std::size_t i = 0; i < n; ++i)
    x[i] = (x[i] - mean) / std::sqrt(variance + 1e-6) * gain[i] + norm_bias[i];
}

/// The parameters of a cell; empty where it has none.
struct CellValues {
  Row recurrent, bias, gain, norm_bias, vectors;
  Row positions{};  // [P][position_vectors*h]
  Row dropout{};    // [h] of this row: factors of what the products read
};

/// One step of unit U of width h for one row at a position of its sentence: x [inputs*h]; updates
/// states [states][h].
template <class U>
void cell_step(const CellValues& c, std::size_t h, const double* x, std::vector<Row>& states,
               std::size_t position = 0) {
  constexpr std::size_t r = U::recurrents, l = U::late, planes = r + l;
  const auto recurrent = [&](const Row& from, std::size_t first, std::size_t count) {
    Row out(count * h);
    for (std::size_t p = 0; p < count; ++p)
      for (std::size_t j = 0; j < h; ++j) {
        double sum = c.bias.empty() ? 0.0 : c.bias[(first + p) * h + j];
        for (std::size_t i = 0; i < h; ++i)
          sum += from[i] * (c.dropout.empty() ? 1.0 : c.dropout[i]) *
                 c.recurrent[i * planes * h + (first + p) * h + j];
        out[p * h + j] = sum;
      }
    if (!c.gain.empty())
      for (std::size_t p = 0; p < count; ++p)
        normalize(&out[p * h], h, &c.gain[(first + p) * h], &c.norm_bias[(first + p) * h]);
    return out;
  };
  const Row u = r ? recurrent(states[0], 0, r) : Row{};
  std::vector<units::Step<double, U>> steps(h);
  for (std::size_t j = 0; j < h; ++j) {
    for (int p = 0; p < U::inputs; ++p) steps[j].x[p] = x[p * h + j];
    for (std::size_t p = 0; p < r; ++p) steps[j].u[p] = u[p * h + j];
    for (int p = 0; p < U::vectors; ++p) steps[j].v[p] = c.vectors[p * h + j];
    for (int p = 0; p < U::states; ++p) steps[j].s[p] = states[p][j];
    if constexpr (constexpr std::size_t n = units::position_vectors_of<U>; n > 0)
      for (std::size_t p = 0; p < n; ++p)
        steps[j].position[p] =
            c.positions[(std::min(position, c.positions.size() / (n * h) - 1) * n + p) * h + j];
  }
  if constexpr (l > 0) {
    Row value(h);
    for (std::size_t j = 0; j < h; ++j) value[j] = U::late_value(steps[j]);
    const Row late = recurrent(value, r, l);
    for (std::size_t j = 0; j < h; ++j)
      for (std::size_t p = 0; p < l; ++p) steps[j].late[p] = late[p * h + j];
  }
  for (std::size_t j = 0; j < h; ++j) {
    double next[U::states];
    U::forward(steps[j], next);
    for (int p = 0; p < U::states; ++p) states[p][j] = next[p];
  }
}

struct AttentionValues {
  bool additive = true;
  std::size_t heads = 1, steps = 0, sentences = 0, space = 0, width = 0;
  Row keys, memory, v;
  std::vector<int> lengths;
};

/// Context [width] and weights [heads*steps] of one query.
inline Row attend(const AttentionValues& a, std::size_t b, const double* query,
                  Row* weights = nullptr) {
  const std::size_t d = a.space / a.heads, m = a.width / a.heads;
  Row context(a.width), all(a.heads * a.steps);
  for (std::size_t head = 0; head < a.heads; ++head) {
    double* w = &all[head * a.steps];
    double sum = 0;
    for (int s = 0; s < a.lengths[b]; ++s) {
      double score = 0;
      for (std::size_t j = 0; j < d; ++j) {
        const double k = a.keys[(s * a.sentences + b) * a.space + head * d + j],
                     q = query[head * d + j];
        score += a.additive ? a.v[head * d + j] * std::tanh(q + k)
                            : q * k / std::sqrt(static_cast<double>(d));
      }
      sum += w[s] = std::exp(score);
    }
    for (int s = 0; s < a.lengths[b]; ++s) {
      w[s] /= sum;
      for (std::size_t j = 0; j < m; ++j)
        context[head * m + j] += w[s] * a.memory[(s * a.sentences + b) * a.width + head * m + j];
    }
  }
  if (weights) *weights = all;
  return context;
}

/// d f / d x[i] by central differences.
inline double slope(const std::function<double()>& f, double& x) {
  const double keep = x, step = 1e-5;
  x = keep + step;
  const double above = f();
  x = keep - step;
  const double below = f();
  x = keep;
  return (above - below) / (2 * step);
}

}  // namespace nmt::test
