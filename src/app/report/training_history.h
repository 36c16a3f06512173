#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace nmt::app {

/// The data of an nmt-report page, from the files that nmt-train writes in a model directory
/// (docs/guide/explain.md documents the JSON). `worst`: number of development sentences. Errors:
/// (usage, data) no model; (data) train.jsonl is missing or has no line of a training log.
nlohmann::ordered_json training_report(const std::string& directory, int worst);

}  // namespace nmt::app
