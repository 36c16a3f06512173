#pragma once

#include "config/period.h"
#include "config/specs.h"
#include "train/training_state.h"

#include <span>
#include <string>

namespace nmt::train {

/// Why a training is finished, for example "update 100 of 100 (after)"; empty if it is not.
/// `after`: the periods of spec.after. `seconds`: wall time over all runs; `ending`: seconds that
/// the last validation and save will need.
std::string finished(const TrainSpec& spec, std::span<const Period> after,
                     const TrainingState& state, double seconds, double ending);

}  // namespace nmt::train
