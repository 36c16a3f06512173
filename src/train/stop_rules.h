#pragma once

#include "config/period.h"
#include "config/specs.h"
#include "train/training_state.h"

#include <optional>
#include <span>
#include <string>

namespace nmt::train {

/// Why a training is finished, for example "update 100 of 100 (after)"; empty if it is not.
/// `after`: the periods of spec.after. `seconds`: wall time over all runs; max-minutes also counts
/// what another validation and save would need, state.validation_seconds.
std::string finished(const TrainSpec& spec, std::span<const Period> after,
                     const TrainingState& state, double seconds);

/// The share of the training that is over, from 0 to 1, by the nearest rule that is known in
/// advance; early stopping is none. Arguments as those of finished().
double share_done(const TrainSpec& spec, std::span<const Period> after, const TrainingState& state,
                  double seconds);

/// A run of a training: its progress at the start, and its wall time so far.
struct Run {
  Progress start;
  double seconds = 0;
};
/// Seconds until the nearest such rule holds, by the speed of this run, validations and saves
/// included; none if there is no rule.
std::optional<double> seconds_left(const TrainSpec& spec, std::span<const Period> after,
                                   const Run& run, const Progress& progress, double seconds);

}  // namespace nmt::train
