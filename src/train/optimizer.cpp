#include "nmt/train/optimizer.h"

#include <algorithm>
#include <cmath>

#include "nmt/core/error.h"
#include "nmt/kernels/pointwise.h"

namespace nmt::train {

void Optimizer::check(const TrainSpec& spec) {
  const bool adamw = spec.optimizer == "adamw";
  if (!adamw && spec.optimizer != "adam") fail(ExitStatus::usage, "optimizer: '{}' is none of adam, adamw", spec.optimizer);
  const auto& p = spec.optimizer_params;
  if (p.size() > (adamw ? 4u : 3u))
    fail(ExitStatus::usage, "optimizer-params: {} numbers; {} takes beta1 beta2 epsilon{}", p.size(), spec.optimizer,
         adamw ? " and weight decay" : " (weight decay is adamw's)");
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (i < 2 && !(p[i] >= 0 && p[i] < 1)) fail(ExitStatus::usage, "optimizer-params: beta{} is {}, not in [0, 1)", i + 1, p[i]);
    if (i == 2 && !(p[i] > 0)) fail(ExitStatus::usage, "optimizer-params: epsilon is {}, not above 0", p[i]);
    if (i == 3 && !(p[i] >= 0)) fail(ExitStatus::usage, "optimizer-params: weight decay is {}, below 0", p[i]);
  }
  if (!(spec.clip_norm >= 0)) fail(ExitStatus::usage, "clip-norm: {} is below 0", spec.clip_norm);
  if (!(spec.exponential_smoothing >= 0 && spec.exponential_smoothing < 1))
    fail(ExitStatus::usage, "exponential-smoothing: {} is not in [0, 1)", spec.exponential_smoothing);
}

Optimizer::Optimizer(const TrainSpec& spec, ParameterSet& parameters, const Context& context)
    : parameters_(parameters), context_(context), clip_norm_(spec.clip_norm), smoothing_(spec.exponential_smoothing) {
  check(spec);
  const auto& params = spec.optimizer_params;
  if (params.size() > 0) beta1_ = params[0];
  if (params.size() > 1) beta2_ = params[1];
  if (params.size() > 2) epsilon_ = params[2];
  if (spec.optimizer == "adamw") decay_ = params.size() > 3 ? params[3] : 0.01;

  moments_.reserve(parameters.all().size());
  slices_.reserve(parameters.all().size());
  dispatch(context_, [&](const auto& device) {
    for (Parameter& parameter : parameters_.all()) {
      NMT_CHECK(parameter.value && parameter.gradient, "parameter {} is frozen: it cannot be trained", parameter.name);
      const std::int64_t n = parameter.shape.elements();
      Moments& m = moments_.emplace_back();
      m.first = context_.empty(parameter.shape);
      m.second = context_.empty(parameter.shape);
      kernels::fill(device, m.first.f32(), n, 0.0f);
      kernels::fill(device, m.second.f32(), n, 0.0f);
      if (smoothing_ > 0) {
        m.average = context_.empty(parameter.shape);
        kernels::fill(device, m.average.f32(), n, 0.0f);
        kernels::add_scaled(device, n, 1.0f, parameter.value.f32(), m.average.f32());
      }
      slices_.push_back({n, parameter.value.f32(), parameter.gradient.f32(), m.first.f32(), m.second.f32(),
                         smoothing_ > 0 ? m.average.f32() : nullptr});
    }
  });
}

UpdateResult Optimizer::update(double rate, std::int64_t tokens) {
  NMT_CHECK(tokens > 0, "an update over {} target tokens", tokens);
  const auto count = static_cast<std::int64_t>(slices_.size());
  const double sum = dispatch(context_, [&](const auto& device) { return kernels::gradient_norm_squared(device, slices_.data(), count); });
  const double per_token = 1.0 / static_cast<double>(tokens);
  const double norm = std::sqrt(sum) * per_token;
  if (!std::isfinite(norm)) {
    clear_gradients();
    return {norm, false};
  }
  ++steps_;
  const double t = static_cast<double>(steps_);
  const double clip = clip_norm_ > 0 && norm > clip_norm_ ? clip_norm_ / norm : 1.0;
  // Kingma & Ba 2015, end of section 2: the bias corrections fold into the rate and epsilon.
  const double correction = std::sqrt(1 - std::pow(beta2_, t));
  kernels::AdamStep step;
  step.rate = static_cast<float>(rate * correction / (1 - std::pow(beta1_, t)));
  step.epsilon = static_cast<float>(epsilon_ * correction);
  step.beta1 = static_cast<float>(beta1_);
  step.beta2 = static_cast<float>(beta2_);
  step.decay = static_cast<float>(rate * decay_);
  step.gradient_scale = static_cast<float>(per_token * clip);
  if (smoothing_ > 0) step.smoothing = static_cast<float>(std::max(smoothing_, 9.0 / (t + 9.0)));
  dispatch(context_, [&](const auto& device) { kernels::adam(device, slices_.data(), count, step); });
  return {norm, true};
}

void Optimizer::clear_gradients() {
  dispatch(context_, [&](const auto& device) {
    for (const auto& slice : slices_) kernels::fill(device, slice.gradient, slice.n, 0.0f);
  });
}

void Optimizer::for_each_published(const Visit& visit) {
  for (std::size_t i = 0; i < moments_.size(); ++i) {
    Parameter& parameter = parameters_.all()[i];
    visit(parameter.name, smoothing_ > 0 ? moments_[i].average : parameter.value);
  }
}

void Optimizer::for_each_state(const Visit& visit) {
  for (std::size_t i = 0; i < moments_.size(); ++i) {
    Parameter& parameter = parameters_.all()[i];
    visit("first." + parameter.name, moments_[i].first);
    visit("second." + parameter.name, moments_[i].second);
    if (smoothing_ > 0) visit("value." + parameter.name, parameter.value);
  }
}

}  // namespace nmt::train
