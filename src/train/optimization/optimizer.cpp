#include "train/optimization/optimizer.h"

#include "core/error.h"
#include "core/math/flush_subnormals.h"
#include "kernels/pointwise.h"
#include "kernels/products/product_input.h"
#include "tensor/copy.h"
#include "tensor/repeat.h"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

namespace nmt::train {
namespace {

// Keys of the two parts of an update for CudaDevice::repeat(), beside the optimizer's address.
enum Part : std::int64_t { measuring, stepping };

enum class Range { below_one, positive, not_negative };

struct Number {
  const char* name;
  double initial;
  Range range;
};

struct Kind {
  UpdateRule rule;
  double rate;  // when none is set; 0: by the corpus
  std::vector<Number> numbers;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {UpdateRule::adam,
       0,
       {{"beta1", 0.9, Range::below_one},
        {"beta2", 0.98, Range::below_one},
        {"epsilon", 1e-9, Range::positive}}},
      {UpdateRule::adamw,
       0,
       {{"beta1", 0.9, Range::below_one},
        {"beta2", 0.98, Range::below_one},
        {"epsilon", 1e-9, Range::positive},
        {"weight decay", 0.01, Range::not_negative}}},
      {UpdateRule::adadelta,
       1.0,
       {{"rho", 0.95, Range::below_one}, {"epsilon", 1e-6, Range::positive}}},
      {UpdateRule::adagrad, 0.05, {{"epsilon", 1e-8, Range::positive}}},
      {UpdateRule::sgd, 1.0, {{"momentum", 0, Range::below_one}}},
  };
  return all;
}

const Kind& kind_of(UpdateRule rule) {
  for (const Kind& kind : kinds())
    if (rule == kind.rule) return kind;
  NMT_FAIL("optimizer {} has no numbers", name_of(rule));
}

// The kernels compute in float32: what is 1 there is refused, and so is an epsilon that is near 0,
// also after its factor sqrt(1 - beta2), since 0/0 is the update of a weight without a gradient.
void check(const Number& number, double value) {
  constexpr double min_positive = 1e-30;
  const bool fits = number.range == Range::below_one
                        ? value >= 0 && static_cast<float>(value) < 1.0f
                    : number.range == Range::positive ? value >= min_positive
                                                      : value >= 0;
  const char* allowed = number.range == Range::below_one  ? "not in [0, 1) in float32"
                        : number.range == Range::positive ? "not at least 1e-30"
                                                          : "below 0";
  if (!fits || !std::isfinite(value))
    fail(ExitStatus::usage, "optimizer-params: {} is {}, {}", number.name, value, allowed);
}

// How many of (first, second) the rule keeps.
int states_of(UpdateRule rule, const std::vector<double>& numbers) {
  switch (rule) {
    case UpdateRule::sgd:
      return numbers[0] > 0 ? kernels::MomentumStep::states : kernels::SgdStep::states;
    case UpdateRule::adagrad: return kernels::AdagradStep::states;
    default: return 2;
  }
}

}  // namespace

void Optimizer::check(const TrainSpec& spec) {
  const Kind& kind = kind_of(spec.optimizer);
  const auto& params = spec.optimizer_params;
  if (params.size() > kind.numbers.size()) {
    std::vector<std::string> names;
    for (const Number& number : kind.numbers) names.emplace_back(number.name);
    fail(ExitStatus::usage, "optimizer-params: {} numbers; {} takes {}: {}", params.size(),
         name_of(spec.optimizer), names.size(), fmt::join(names, ", "));
  }
  for (std::size_t i = 0; i < params.size(); ++i) train::check(kind.numbers[i], params[i]);
  if (!(spec.clip_norm >= 0)) fail(ExitStatus::usage, "clip-norm: {} is below 0", spec.clip_norm);
  if (!(spec.exponential_smoothing >= 0 && spec.exponential_smoothing < 1))
    fail(ExitStatus::usage, "exponential-smoothing: {} is not in [0, 1)",
         spec.exponential_smoothing);
  if (spec.average_after < 0)
    fail(ExitStatus::usage, "average-after: {} is below 0", spec.average_after);
  if (spec.average_after > 0 && spec.exponential_smoothing > 0)
    fail(ExitStatus::usage,
         "average-after and exponential-smoothing are two averages of the weights; give one");
}

std::optional<double> Optimizer::usual_rate(UpdateRule rule) {
  const double rate = kind_of(rule).rate;
  return rate > 0 ? std::optional(rate) : std::nullopt;
}

int Optimizer::states(const TrainSpec& spec) {
  check(spec);
  std::vector<double> numbers;
  for (const Number& number : kind_of(spec.optimizer).numbers) numbers.push_back(number.initial);
  std::copy(spec.optimizer_params.begin(), spec.optimizer_params.end(), numbers.begin());
  return states_of(spec.optimizer, numbers);
}

Optimizer::Optimizer(const TrainSpec& spec, ParameterSet& parameters, const Context& context)
    : parameters_(parameters),
      context_(context),
      rule_(spec.optimizer),
      clip_norm_(spec.clip_norm),
      smoothing_(spec.exponential_smoothing),
      averages_(has_average(spec)) {
  check(spec);
  for (const Number& number : kind_of(rule_).numbers) numbers_.push_back(number.initial);
  std::copy(spec.optimizer_params.begin(), spec.optimizer_params.end(), numbers_.begin());

  figures_ = context_.empty({4}, Dtype::f64);
  nmt::clear<double>(context_, figures_);
  factor_ = context_.empty({1});
  const int states = states_of(rule_, numbers_);
  states_.reserve(parameters.all().size());
  slices_.reserve(parameters.all().size());
  dispatch(context_, [&](const auto& device) {
    for (Parameter& parameter : parameters_.all()) {
      NMT_CHECK(parameter.value && parameter.gradient,
                "parameter {} is frozen: it cannot be trained", parameter.name);
      const std::int64_t n = parameter.shape.elements();
      States& s = states_.emplace_back();
      kernels::OptimizerSlice& slice = slices_.emplace_back();
      slice = {n, parameter.value.f32(), parameter.gradient.f32(), nullptr, nullptr, nullptr};
      const auto make = [&](Tensor& tensor, float*& pointer) {
        tensor = context_.empty(parameter.shape);
        pointer = tensor.f32();
        kernels::fill(device, pointer, n, 0.0f);
      };
      if (states > 0) make(s.first, slice.first);
      if (states > 1) make(s.second, slice.second);
      if (averages_) {
        make(s.average, slice.average);
        kernels::add_scaled(device, n, 1.0f, slice.value, slice.average);
      }
    }
  });
}

// The norm of the gradients, and the factor that clips it.
void Optimizer::measure(double share) {
  dispatch(context_, [&](const auto& device) {
    double* const squares = figures_.data<double>() + 3;
    kernels::gradient_norm_squared(device, slices_.data(),
                                   static_cast<std::int64_t>(slices_.size()), squares);
    kernels::clip(device, squares, share, clip_norm_, factor_.f32());
  });
}

UpdateResult Optimizer::update(double rate, std::int64_t count) {
  const FlushSubnormals flush_subnormals;  // of moments without recent gradients
  NMT_CHECK(count > 0, "an update over {} target tokens or sentences", count);
  const double share = 1.0 / static_cast<double>(count);
  const auto self = reinterpret_cast<std::intptr_t>(this);
  repeat(context_, {self, measuring}, [&] { measure(share); });
  PendingDownload<double> download(context_, figures_);
  ++steps_;
  follow_passes();
  repeat(context_, {self, stepping}, [&] {
    step(rate);
    nmt::clear<double>(context_, figures_);
  });
  const std::vector<double>& figures = download.wait();
  const double norm = std::sqrt(figures[3]) * share;
  const UpdateResult result{figures[0], figures[1], figures[2], norm, std::isfinite(norm)};
  if (!result.applied) --steps_;  // as the kernel has decided from the same norm
  return result;
}

// Updates round the weights that passes would round, and leave the gradients that passes overwrite.
void Optimizer::follow_passes() {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    Parameter& parameter = parameters_.all()[i];
    parameter.gradient_is_old = parameter.gradient_starts_with_product;
    slices_[i].keeps_gradient = parameter.gradient_is_old ? 1 : 0;
    if (!parameter.is_rounded_in_passes) continue;
    Tensor& copy = states_[i].rounded;
    if (!copy) copy = allocate_rounded(context_, parameter.shape);
    if (!copy) continue;
    slices_[i].rounded = copy.data<std::uint16_t>();
    parameter.rounded = {parameter.value.f32(), copy};
  }
}

// After somebody may have written the weights.
void Optimizer::round_again(std::size_t i) {
  const Parameter& parameter = parameters_.all()[i];
  if (!parameter.rounded) return;
  dispatch(context_, [&](const auto& device) {
    kernels::round_matrix(device, parameter.value.rows(), parameter.value.width(),
                          parameter.value.f32(), parameter.rounded.copy());
  });
}

void Optimizer::step(double rate) {
  const double t = static_cast<double>(steps_);
  const auto run = [&](auto rule, double rule_rate, auto kernel) {
    rule.rate = static_cast<float>(rule_rate);
    rule.gradient_factor = factor_.f32();
    if (smoothing_ > 0)
      rule.smoothing = static_cast<float>(std::max(smoothing_, 9.0 / (t + 9.0)));
    else if (averages_)  // the mean of the weights since then; before, the weights
      rule.smoothing = average_from_ < 0
                           ? 1.0f
                           : static_cast<float>(1.0 / static_cast<double>(steps_ - average_from_));
    dispatch(context_, [&](const auto& device) {
      kernel(device, slices_.data(), static_cast<std::int64_t>(slices_.size()), rule);
    });
  };
  const auto number = [&](std::size_t i) { return static_cast<float>(numbers_[i]); };
  if (rule_ == UpdateRule::adadelta) {
    kernels::AdadeltaStep rule;
    rule.rho = number(0);
    rule.epsilon = number(1);
    run(rule, rate, [](const auto&... all) { kernels::adadelta(all...); });
  } else if (rule_ == UpdateRule::adagrad) {
    kernels::AdagradStep rule;
    rule.epsilon = number(0);
    run(rule, rate, [](const auto&... all) { kernels::adagrad(all...); });
  } else if (rule_ == UpdateRule::sgd && numbers_[0] > 0) {
    kernels::MomentumStep rule;
    rule.momentum = number(0);
    run(rule, rate, [](const auto&... all) { kernels::momentum(all...); });
  } else if (rule_ == UpdateRule::sgd) {
    run(kernels::SgdStep{}, rate, [](const auto&... all) { kernels::sgd(all...); });
  } else {
    // Kingma & Ba 2015, end of section 2: the bias corrections fold into the rate and epsilon.
    const double correction = std::sqrt(1 - std::pow(numbers_[1], t));
    kernels::AdamStep rule;
    rule.epsilon = static_cast<float>(numbers_[2] * correction);
    rule.beta1 = number(0);
    rule.beta2 = number(1);
    if (rule_ == UpdateRule::adamw) rule.decay = static_cast<float>(rate * numbers_[3]);
    run(rule, rate * correction / (1 - std::pow(numbers_[0], t)),
        [](const auto&... all) { kernels::adam(all...); });
  }
}

void Optimizer::clear() {
  nmt::clear<double>(context_, figures_);
  for (Parameter& parameter : parameters_.all()) parameter.gradient_is_old = false;
  dispatch(context_, [&](const auto& device) {
    for (const auto& slice : slices_) kernels::fill(device, slice.gradient, slice.n, 0.0f);
  });
}

void Optimizer::for_each_published(const Visit& visit) {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    Parameter& parameter = parameters_.all()[i];
    visit(parameter.name, averages_ ? states_[i].average : parameter.value);
    if (!averages_) round_again(i);
  }
}

void Optimizer::for_each_state(const Visit& visit) {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    Parameter& parameter = parameters_.all()[i];
    if (states_[i].first) visit("first." + parameter.name, states_[i].first);
    if (states_[i].second) visit("second." + parameter.name, states_[i].second);
    if (!averages_) continue;
    visit("value." + parameter.name, parameter.value);
    round_again(i);
  }
}

}  // namespace nmt::train
