#pragma once

#include "config/period.h"
#include "config/specs.h"
#include "train/training_state.h"

#include <span>
#include <string>

namespace nmt::train {

/// Why a training is finished, for example "update 100 of 100 (after)"; empty if it is not.
/// `after`: the periods of spec.after. `seconds`: wall time over all runs; max-minutes also counts
/// what another validation and save would need, state.validation_seconds.
std::string finished(const TrainSpec& spec, std::span<const Period> after,
                     const TrainingState& state, double seconds);

}  // namespace nmt::train
