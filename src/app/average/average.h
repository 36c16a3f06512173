#pragma once

#include "config/option.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nmt::app {

/// Specification of nmt-average.
struct AverageSpec {
  std::string model;   ///< the model directory with the checkpoints
  std::string output;  ///< a new model directory
  // At most one of these three; without any, all checkpoints are averaged.
  std::int64_t last = 0;  ///< average the latest N; 0: no limit
  std::int64_t best = 0;  ///< average the latest N that were the best so far; 0: no limit
  std::vector<std::string> checkpoints;  ///< numbers of updates
};

/// The options of nmt-average.
std::vector<config::Option> fields(AverageSpec& spec);

/// Writes a model directory with the mean of the checkpoints' weights, atomically. Returns the
/// updates of the checkpoints, oldest first. Errors (usage): no model, no output, an invalid choice
/// of checkpoints, weights that are not float32; as ModelDirectory::open, average_weights and
/// write_model.
std::vector<std::int64_t> average(const AverageSpec& spec);

}  // namespace nmt::app
