#include "train/best_value.h"

#include <cmath>
#include <optional>

namespace nmt::train {

bool enter_validation(const MetricValue& first, bool counts, const Schedule& schedule,
                      TrainingState& state) {
  state.validation_due = false;
  if (state.best_metric != first.name) {  // another metric decides from here on
    state.best.reset();
    state.best_due.reset();
  }
  state.best_metric = first.name;
  const auto exceeds = [&first](const std::optional<double>& other) {
    return std::isfinite(first.value) &&
           (!other || (first.higher_is_better ? first.value > *other : first.value < *other));
  };
  const bool best = exceeds(state.best);
  if (best) {
    state.best = first.value;
    state.best_update = state.progress.updates;
  }
  state.validated_update = state.progress.updates;
  if (!counts) return best;
  const bool better = exceeds(state.best_due);
  if (better) state.best_due = first.value;
  // A BLEU of 0 is no stall as long as none was higher: the model has not begun to translate.
  const bool begun = !first.higher_is_better || state.best_due.value_or(0) > 0;
  state.stalled = better || !begun ? 0 : state.stalled + 1;
  if (schedule.stall_counts(state.stalled)) {
    ++state.stalls.decays;
    if (state.stalls.first_epoch < 0) state.stalls.first_epoch = state.progress.epochs;
  }
  return best;
}

void discard_best(TrainingState& state) {
  state.best.reset();
  state.best_due.reset();
  state.stalled = 0;
}

}  // namespace nmt::train
