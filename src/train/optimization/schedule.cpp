#include "train/optimization/schedule.h"

#include "core/error.h"

#include <algorithm>
#include <cmath>

namespace nmt::train {

Schedule::Schedule(const TrainSpec& spec)
    : base_(spec.learn_rate),
      shape_(spec.schedule),
      warmup_(parse_period(spec.lr_warmup, "lr-warmup")),
      inv_sqrt_(parse_period(spec.lr_decay_inv_sqrt, "lr-decay-inv-sqrt")),
      decay_(spec.lr_decay),
      floor_(spec.lr_floor),
      cooldown_(spec.lr_cooldown) {
  if (!(base_ > 0) || !std::isfinite(base_))
    fail(ExitStatus::usage, "learn-rate: {} is not above 0", base_);
  if (!(decay_ >= 0 && decay_ < 1))
    fail(ExitStatus::usage, "lr-decay: {} is not in [0, 1)", decay_);
  if (!(floor_ >= 0 && floor_ <= base_))
    fail(ExitStatus::usage, "lr-floor: {} is not in [0, learn-rate], learn-rate is {}", floor_,
         base_);
  if (!(cooldown_ >= 0 && cooldown_ <= 1))
    fail(ExitStatus::usage, "lr-cooldown: {} is not in [0, 1]", cooldown_);
  if (shape_ == RateSchedule::inv_sqrt && spec.lr_decay_inv_sqrt.empty()) inv_sqrt_ = warmup_;
  if (shape_ == RateSchedule::rnmt) {
    if (spec.rnmt_schedule.size() != 4)
      fail(ExitStatus::usage, "rnmt-schedule: {} numbers, needs the four n, p, s, e",
           spec.rnmt_schedule.size());
    n_ = spec.rnmt_schedule[0], p_ = spec.rnmt_schedule[1], s_ = spec.rnmt_schedule[2],
    e_ = spec.rnmt_schedule[3];
    if (!(n_ >= 1 && p_ > 0 && s_ >= 0 && e_ > s_))
      fail(ExitStatus::usage, "rnmt-schedule: n {} p {} s {} e {}; needs n >= 1, p > 0, 0 <= s < e",
           n_, p_, s_, e_);
  }
  at_epochs_ = spec.lr_decay_strategy != DecayStrategy::stalled;
  at_stalls_ = spec.lr_decay_strategy != DecayStrategy::epoch;
  const auto& start = spec.lr_decay_start;
  if (start.empty() || start.size() > 2 ||
      std::any_of(start.begin(), start.end(), [](int n) { return n < 1; }))
    fail(ExitStatus::usage,
         "lr-decay-start: needs one or two numbers of at least 1 (first epoch, stalled "
         "validations)");
  epoch_start_ = start.front();
  stall_start_ = start.back();
}

double Schedule::rate(const Progress& progress, const Stalls& stalls, double done) const {
  double rate = base_ * shape(progress), warm_up = 1.0;
  if (shape_ != RateSchedule::rnmt && warmup_)
    warm_up = std::min(1.0, warmup_.measure(progress) / warmup_.count);
  rate *= warm_up;
  if (decay_ > 0) rate *= std::pow(decay_, decay_steps(progress, stalls));
  rate = std::max(rate, floor_ * warm_up);
  if (cools_down()) rate *= std::clamp((1 - done) / cooldown_, 0.0, 1.0);
  return std::ldexp(rate, -static_cast<int>(std::min<std::int64_t>(stalls.recoveries, 1000)));
}

double Schedule::shape(const Progress& progress) const {
  if (shape_ == RateSchedule::inv_sqrt && inv_sqrt_)
    return std::sqrt(inv_sqrt_.count / std::max(inv_sqrt_.count, inv_sqrt_.measure(progress)));
  if (shape_ != RateSchedule::rnmt) return 1.0;
  const double t = static_cast<double>(progress.updates);
  return std::min(
      {1 + t * (n_ - 1) / (n_ * p_), n_, n_ * std::pow(2 * n_, (s_ - n_ * t) / (e_ - s_))});
}

double Schedule::decay_steps(const Progress& progress, const Stalls& stalls) const {
  if (!at_epochs_) return static_cast<double>(stalls.decays);
  // Epochs are numbered from 1; the last update of one, at a whole number of passes, still belongs
  // to it. The first has no decay before it.
  const auto number = [](double epochs) { return std::max(std::ceil(epochs), 1.0); };
  const double epoch = number(progress.epochs);
  double steps = std::max(0.0, epoch - std::max(static_cast<double>(epoch_start_), 2.0) + 1);
  if (at_stalls_ && stalls.first_epoch >= 0)
    steps = std::max(steps, epoch - number(stalls.first_epoch));
  return steps;
}

}  // namespace nmt::train
