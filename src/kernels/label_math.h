#pragma once

// The mathematics of label_loss.h for one row, one score or one gradient: on the CPU and on a GPU.

#include "core/host_device.h"
#include "kernels/label_loss.h"

#include <cmath>

namespace nmt::kernels {

/// log sum_i exp(score(i)), i in [0, n).
template <class Score>
NMT_HOST_DEVICE double log_sum_exp_of(std::int64_t n, Score&& score) {
  double largest = score(0), sum = 0;
  for (std::int64_t i = 1; i < n; ++i) {
    const double x = score(i);
    if (x > largest) largest = x;
  }
  for (std::int64_t i = 0; i < n; ++i) sum += std::exp(score(i) - largest);
  return largest + std::log(sum);
}

/// Row r of label_loss(): writes its loss to scratch[r] and its smoothed loss to scratch[R+r].
NMT_HOST_DEVICE void label_loss_row(const LabelLoss& a, std::int64_t r) {
  const float* const z = a.logits + r * a.labels;
  const std::int32_t target = a.target[r];
  double loss = 0, smoothed = 0;
  const double other = static_cast<double>(a.smoothing) / static_cast<double>(a.labels),
               label = 1 - static_cast<double>(a.smoothing) + other;
  if (target >= 0) {
    const double log_z = log_sum_exp_of(a.labels, [z](std::int64_t i) { return double{z[i]}; });
    loss = log_z - double{z[target]};
    smoothed = loss;
    if (a.smoothing > 0) {
      smoothed = label * std::log(label) +
                 static_cast<double>(a.labels - 1) * other * std::log(other);  // minus the entropy
      for (std::int64_t i = 0; i < a.labels; ++i)
        smoothed += (i == target ? label : other) * (log_z - double{z[i]});
    }
    for (std::int64_t i = 0; a.dlogits && i < a.labels; ++i)
      a.dlogits[r * a.labels + i] =
          static_cast<float>(std::exp(double{z[i]} - log_z) - (i == target ? label : other));
  } else {
    for (std::int64_t i = 0; a.dlogits && i < a.labels; ++i) a.dlogits[r * a.labels + i] = 0.0f;
  }
  a.scratch[r] = loss;
  a.scratch[a.rows + r] = smoothed;
}

/// Access to the arguments of crf_loss() by step t, sentence b and label.
struct Crf {
  const CrfLoss& a;

  NMT_HOST_DEVICE std::int64_t at(std::int64_t t, std::int64_t b, std::int64_t label) const {
    return (t * a.sentences + b) * a.labels + label;
  }
  NMT_HOST_DEVICE std::int64_t length(std::int64_t b) const { return a.lengths[b]; }
  NMT_HOST_DEVICE std::int64_t target(std::int64_t t, std::int64_t b) const {
    return a.target[t * a.sentences + b];
  }
  NMT_HOST_DEVICE double emission(std::int64_t t, std::int64_t b, std::int64_t label) const {
    return a.emissions[at(t, b, label)];
  }
  NMT_HOST_DEVICE double transition(std::int64_t from, std::int64_t to) const {
    return a.transitions[from * a.labels + to];
  }
  NMT_HOST_DEVICE double start(std::int64_t label) const { return transition(a.labels, label); }
  NMT_HOST_DEVICE double end(std::int64_t label) const { return transition(a.labels + 1, label); }
  /// alpha: log of the sum over all beginnings that end with the label at t, including t.
  NMT_HOST_DEVICE double& alpha(std::int64_t t, std::int64_t b, std::int64_t label) const {
    return a.scratch[at(t, b, label)];
  }
  /// beta: log of the sum over all continuations after the label at t, without t.
  NMT_HOST_DEVICE double& beta(std::int64_t t, std::int64_t b, std::int64_t label) const {
    return a.scratch[(a.steps * a.sentences + t * a.sentences + b) * a.labels + label];
  }
  NMT_HOST_DEVICE double& log_z(std::int64_t b) const {
    return a.scratch[2 * a.steps * a.sentences * a.labels + b];
  }
  NMT_HOST_DEVICE double& loss(std::int64_t b) const {
    return a.scratch[(2 * a.steps * a.labels + 1) * a.sentences + b];
  }

  NMT_HOST_DEVICE void forward(std::int64_t t, std::int64_t b, std::int64_t j) const {
    if (t >= length(b)) return;
    const Crf& c = *this;
    const double before =
        t == 0 ? start(j) : log_sum_exp_of(a.labels, [c, t, b, j](std::int64_t i) {
          return c.alpha(t - 1, b, i) + c.transition(i, j);
        });
    alpha(t, b, j) = before + emission(t, b, j);
  }
  NMT_HOST_DEVICE void backward(std::int64_t t, std::int64_t b, std::int64_t i) const {
    if (t >= length(b)) return;
    const Crf& c = *this;
    beta(t, b, i) =
        t + 1 == length(b) ? end(i) : log_sum_exp_of(a.labels, [c, t, b, i](std::int64_t j) {
          return c.transition(i, j) + c.emission(t + 1, b, j) + c.beta(t + 1, b, j);
        });
  }
  /// The partition function and the loss of a sentence, from alpha.
  NMT_HOST_DEVICE void finish(std::int64_t b) const {
    const Crf& c = *this;
    const std::int64_t last = length(b) - 1;
    log_z(b) = log_sum_exp_of(
        a.labels, [c, last, b](std::int64_t j) { return c.alpha(last, b, j) + c.end(j); });
    double score = start(target(0, b)) + end(target(last, b));
    for (std::int64_t t = 0; t <= last; ++t) {
      score += emission(t, b, target(t, b));
      if (t > 0) score += transition(target(t - 1, b), target(t, b));
    }
    loss(b) = log_z(b) - score;
  }
  NMT_HOST_DEVICE void emission_gradient(std::int64_t t, std::int64_t b, std::int64_t j) const {
    double slope = 0;
    if (t < length(b))
      slope = std::exp(alpha(t, b, j) + beta(t, b, j) - log_z(b)) - (target(t, b) == j ? 1 : 0);
    a.demissions[at(t, b, j)] = static_cast<float>(slope);
  }
  /// Row i of the transitions: a label, the start or the end.
  NMT_HOST_DEVICE void transition_gradient(std::int64_t i, std::int64_t j) const {
    double slope = 0;
    for (std::int64_t b = 0; b < a.sentences; ++b) {
      const std::int64_t last = length(b) - 1;
      if (i == a.labels) {
        slope += std::exp(alpha(0, b, j) + beta(0, b, j) - log_z(b)) - (target(0, b) == j ? 1 : 0);
      } else if (i == a.labels + 1) {
        slope += std::exp(alpha(last, b, j) + end(j) - log_z(b)) - (target(last, b) == j ? 1 : 0);
      } else {
        for (std::int64_t t = 1; t <= last; ++t)
          slope += std::exp(alpha(t - 1, b, i) + transition(i, j) + emission(t, b, j) +
                            beta(t, b, j) - log_z(b)) -
                   (target(t - 1, b) == i && target(t, b) == j ? 1 : 0);
      }
    }
    a.dtransitions[i * a.labels + j] += static_cast<float>(slope);
  }
};

}  // namespace nmt::kernels
