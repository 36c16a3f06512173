#include "app/explain/gate_memory.h"

#include "core/error.h"

#include <algorithm>
#include <cmath>

namespace nmt::app {
namespace {

std::vector<double> product(std::span<const float> a, std::span<const float> b) {
  NMT_CHECK(a.size() == b.size(), "gates of {} and {} values", a.size(), b.size());
  std::vector<double> result(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) result[i] = static_cast<double>(a[i]) * b[i];
  return result;
}

}  // namespace

GatedMemory gated_memory(std::int64_t steps, std::int64_t width, std::span<const float> input,
                         std::span<const float> forget) {
  return {steps, width, {input.begin(), input.end()}, {forget.begin(), forget.end()}};
}

GatedMemory gated_memory_lower(std::int64_t steps, std::int64_t width, std::span<const float> input,
                               std::span<const float> forget,
                               std::span<const float> higher_forget) {
  return {steps, width, product(input, higher_forget), product(forget, higher_forget)};
}

GatedMemory gated_memory_higher(std::int64_t steps, std::int64_t width,
                                std::span<const float> input, std::span<const float> forget,
                                std::span<const float> lower_forget) {
  return {steps, width, {input.begin(), input.end()}, product(forget, lower_forget)};
}

std::vector<std::vector<double>> memory_weights(const GatedMemory& m) {
  const auto h = static_cast<std::size_t>(m.width), n = static_cast<std::size_t>(m.steps);
  std::vector<std::vector<double>> weights(n);
  std::vector<double> weight(h);
  for (std::size_t k = 0; k < n; ++k) {
    std::copy_n(m.enter.begin() + static_cast<std::ptrdiff_t>(k * h), h, weight.begin());
    for (std::size_t t = k; t < n; ++t) {
      double sum = 0;
      for (std::size_t j = 0; j < h; ++j) {
        if (t > k) weight[j] *= m.carry[t * h + j];
        sum += weight[j];
      }
      weights[k].push_back(sum / static_cast<double>(h));
    }
  }
  return weights;
}

std::vector<double> state_slopes(std::span<const float> slopes, std::span<const float> partner) {
  return partner.empty() ? std::vector<double>(slopes.begin(), slopes.end())
                         : product(slopes, partner);
}

std::vector<double> gradient_norms(std::int64_t steps, std::int64_t width,
                                   std::span<const double> slopes) {
  const auto h = static_cast<std::size_t>(width), n = static_cast<std::size_t>(steps);
  if (n < 2) return {};
  std::vector<double> norms(n - 1), derivative(h);
  for (std::size_t k = 0; k + 1 < n; ++k) {
    std::fill(derivative.begin(), derivative.end(), 1.0);
    for (std::size_t t = k + 1; t < n; ++t) {
      double squares = 0;
      for (std::size_t j = 0; j < h; ++j) {
        derivative[j] *= slopes[t * h + j];
        squares += derivative[j] * derivative[j];
      }
      norms[t - k - 1] += std::sqrt(squares / static_cast<double>(h));
    }
  }
  for (std::size_t d = 1; d < n; ++d) norms[d - 1] /= static_cast<double>(n - d);
  return norms;
}

std::vector<double> channel_means(std::int64_t steps, std::int64_t width,
                                  std::span<const float> gate) {
  std::vector<double> means;
  for (std::int64_t t = 0; t < steps; ++t) {
    double sum = 0;
    for (std::int64_t j = 0; j < width; ++j) sum += gate[static_cast<std::size_t>(t * width + j)];
    means.push_back(sum / static_cast<double>(width));
  }
  return means;
}

void Correlation::add(double x, double y) {
  n_ += 1;
  const double dx = x - mean_x_, dy = y - mean_y_;
  mean_x_ += dx / n_;
  mean_y_ += dy / n_;
  xx_ += dx * (x - mean_x_);
  yy_ += dy * (y - mean_y_);
  xy_ += dx * (y - mean_y_);
}

std::optional<double> Correlation::value() const {
  constexpr double noise = 1e-20;  // bound on the variance of constant gates, from rounding
  if (n_ < 2 || xx_ <= noise * n_ || yy_ <= noise * n_) return std::nullopt;
  return std::clamp(xy_ / std::sqrt(xx_ * yy_), -1.0, 1.0);
}

}  // namespace nmt::app
