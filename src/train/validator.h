#pragma once

#include "autograd/parameter.h"
#include "config/period.h"

#include <functional>
#include <string>
#include <vector>

namespace nmt::train {

struct MetricValue {
  std::string name;  ///< as in valid-metrics
  double value = 0;
  bool higher_is_better = false;
};

/// The metrics in the order of valid-metrics; the first decides about the best checkpoint and early
/// stopping.
using ValidationResult = std::vector<MetricValue>;

/// Copies the weights that translate (averaged where there is an average) into the parameters of a
/// model of the same shape on the same device.
using CopyWeights = std::function<void(ParameterSet& into)>;

/// Thrown by a Validator, between batches, when the training has been asked to stop. The trainer
/// catches it.
struct Interrupted {};

/// Measures weights on the development set. Implemented in app/train, since search and
/// eval are siblings of this floor.
class Validator {
 public:
  virtual ~Validator() = default;
  /// At least one metric. Throws Interrupted.
  virtual ValidationResult validate(const CopyWeights& weights, const Progress& progress) = 0;
  /// A trial before the first update, on the longest development sentence, so that what fails fails
  /// early. Throws Interrupted.
  virtual void dry_run(const CopyWeights& weights) = 0;
};

}  // namespace nmt::train
