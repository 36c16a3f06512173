#pragma once

#include "model/model.h"
#include "tensor/copy.h"

#include <array>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

namespace nmt::app::bench {

/// The derivative at 0 of a function with rounding errors. Central differences of the steps h, h/2,
/// h/4, ... are extrapolated to a step of 0 in pairs (Richardson). Long steps suffer from
/// curvature, short ones from rounding: the two neighboring values that agree best are averaged.
inline double slope_at_zero(const std::function<double(double)>& function, double h) {
  constexpr std::size_t steps = 7;
  std::array<double, steps> differences;
  for (double& difference : differences) {
    difference = (function(h) - function(-h)) / (2 * h);
    h /= 2;
  }
  std::array<double, steps - 1> extrapolated;
  for (std::size_t i = 0; i + 1 < steps; ++i)
    extrapolated[i] = (4 * differences[i + 1] - differences[i]) / 3;
  double slope = extrapolated[0], nearest = INFINITY;
  for (std::size_t i = 0; i + 2 < steps; ++i) {
    const double distance = std::abs(extrapolated[i + 1] - extrapolated[i]);
    if (distance >= nearest) continue;
    nearest = distance;
    slope = (extrapolated[i] + extrapolated[i + 1]) / 2;
  }
  return slope;
}

/// The norm of the gradients of a model's parameters, and the slope of its loss, without label
/// smoothing and dropout, in their direction. The two are equal if the gradients are those of the
/// loss. Parameters are left as they were.
struct GradientSlope {
  double norm = 0, slope = 0;

  GradientSlope(Model& model, const Batch& batch) {
    const Context& context = model.context();
    std::vector<std::vector<float>> gradients, values;
    for (const Parameter& p : model.parameters().all()) {
      gradients.push_back(download<float>(context, p.gradient));
      values.push_back(download<float>(context, p.value));
      for (const float g : gradients.back()) norm += static_cast<double>(g) * g;
    }
    norm = std::sqrt(norm);
    const auto loss = [&](double step) {
      std::size_t i = 0;
      for (Parameter& p : model.parameters().all()) {
        std::vector<float> moved = values[i];
        for (std::size_t j = 0; j < moved.size(); ++j)
          moved[j] += static_cast<float>(step / norm * static_cast<double>(gradients[i][j]));
        upload(context, std::span<const float>(moved), p.value);
        ++i;
      }
      return model.evaluate(batch).cross_entropy;
    };
    // The first step changes the loss by about a hundredth.
    slope = slope_at_zero(loss, 0.01 * loss(0) / norm);
    loss(0);
  }
};

}  // namespace nmt::app::bench
