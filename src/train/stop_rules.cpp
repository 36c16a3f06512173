#include "train/stop_rules.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace nmt::train {

std::string finished(const TrainSpec& spec, std::span<const Period> after,
                     const TrainingState& state, double seconds) {
  for (const Period& period : after) {
    if (!is_reached(period, state.progress)) continue;
    const char* unit = period.unit == Period::Unit::epochs   ? "epoch"
                       : period.unit == Period::Unit::labels ? "target token"
                                                             : "update";
    const double done = period.measure(state.progress);
    return period.unit != Period::Unit::epochs || period.count == std::round(period.count)
               ? fmt::format("{} {:.0f} of {:.0f} (after)", unit, done, period.count)
               : fmt::format("{} {:.4g} of {:.4g} (after)", unit, done, period.count);
  }
  if (spec.early_stopping > 0 && state.stalled >= spec.early_stopping)
    return fmt::format("{} validations without a better {} (early-stopping)", state.stalled,
                       state.best_metric);
  const double allowed = spec.max_minutes * 60;
  if (allowed > 0 && seconds + state.validation_seconds >= allowed) {
    const auto minutes = [](double m) { return fmt::format("{:.{}f}", m, m < 10 ? 2 : 1); };
    const std::string reserve =
        seconds < allowed
            ? fmt::format(", with {:.1f} s to validate and save", state.validation_seconds)
            : "";
    return fmt::format("{} of {} minutes{} (max-minutes)", minutes(seconds / 60),
                       minutes(spec.max_minutes), reserve);
  }
  return "";
}

double share_done(const TrainSpec& spec, std::span<const Period> after, const TrainingState& state,
                  double seconds) {
  double done = 0;
  for (const Period& period : after)
    done = std::max(done, period.measure(state.progress) / period.count);
  if (spec.max_minutes > 0)
    done = std::max(done, (seconds + state.validation_seconds) / (spec.max_minutes * 60));
  return std::min(done, 1.0);
}

std::optional<double> seconds_left(const TrainSpec& spec, std::span<const Period> after,
                                   const Run& run, const Progress& progress, double seconds) {
  std::optional<double> left;
  const auto take = [&](double until) {
    left = std::max(0.0, std::min(left.value_or(until), until));
  };
  for (const Period& period : after) {
    const double now = period.measure(progress), done = now - period.measure(run.start);
    if (done > 0) take((period.count - now) * run.seconds / done);
  }
  if (spec.max_minutes > 0) take(spec.max_minutes * 60 - seconds);
  return left;
}

}  // namespace nmt::train
