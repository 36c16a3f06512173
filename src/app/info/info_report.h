#pragma once

#include "config/specs.h"
#include "model/inventory.h"
#include "model/memory_estimate.h"

#include <string>

namespace nmt::app {

/// The data of an nmt-info report.
struct ModelInfo {
  std::string origin;                 ///< the directory, or "settings"
  std::string precision = "float32";  ///< of the weights in the directory
  ModelSpec spec;
  int source_vocabulary = 0, target_vocabulary = 0;
  Inventory inventory;
  BatchSize training_batch, decoding_batch;
  int beam = 0;
  std::string optimizer;
  TrainingMemory training;
  DecodingMemory decoding;
};

/// The report as text.
std::string text_of(const ModelInfo& info);
/// The report as JSON.
std::string json_of(const ModelInfo& info);

}  // namespace nmt::app
