#include "train/stop_rules.h"

#include <fmt/format.h>

namespace nmt::train {

std::string finished(const TrainSpec& spec, std::span<const Period> after,
                     const TrainingState& state, double seconds) {
  for (const Period& period : after) {
    if (!is_reached(period, state.progress)) continue;
    const char* unit = period.unit == Period::Unit::epochs   ? "epoch"
                       : period.unit == Period::Unit::labels ? "target label"
                                                             : "update";
    return fmt::format("{} {:.0f} of {:.0f} (after)", unit, period.measure(state.progress),
                       period.count);
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

}  // namespace nmt::train
