#pragma once

#include "config/specs.h"
#include "kernels/recurrent/unit.h"
#include "model/inventory.h"
#include "model/memory_estimate.h"

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

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

/// One line about a unit, and its JSON.
std::string unit_text(const kernels::Unit& unit);
nlohmann::ordered_json unit_json(const kernels::Unit& unit);
/// The table of the parts with their totals, and a line that explains it.
std::string parts_text(const Inventory& inventory);
/// Parameters and weights of the parts, and their totals.
nlohmann::ordered_json parameters_json(const Inventory& inventory);
/// Bytes as a column of a table.
std::string mebibytes(std::int64_t bytes);

/// The report as text.
std::string text_of(const ModelInfo& info);
/// The report as JSON.
std::string json_of(const ModelInfo& info);

}  // namespace nmt::app
