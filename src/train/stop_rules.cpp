#include "train/stop_rules.h"

#include <fmt/format.h>

namespace nmt::train {

std::string finished(const TrainSpec& spec, std::span<const Period> after,
                     const TrainingState& state, double seconds, double ending) {
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
  if (allowed > 0 && seconds + ending >= allowed)
    return fmt::format("{:.1f} of {:.1f} minutes (max-minutes)", seconds / 60, spec.max_minutes);
  return "";
}

}  // namespace nmt::train
