#pragma once

#include "train/optimization/schedule.h"
#include "train/training_state.h"
#include "train/validator.h"

namespace nmt::train {

// What validations decide: the best value of the first metric, the count of validations without
// progress (early stopping) and the decays of the learning rate.

/// Enters the first metric of a validation of the present update into the state. Only one that
/// `counts` is a step of early stopping and decay. Returns whether it is the best so far.
bool enter_validation(const MetricValue& first, bool counts, const Schedule& schedule,
                      TrainingState& state);

/// Forgets the best value, with which later ones do not compare.
void discard_best(TrainingState& state);

}  // namespace nmt::train
