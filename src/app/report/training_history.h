#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace nmt::app {

/// What nmt-report shows, from the files that nmt-train leaves in a model directory
/// (docs/guide/explain.md lists the members). `worst`: so many development sentences. Errors: usage
/// or data where there is no model; data where train.jsonl is missing or holds not one line of a
/// training's log.
nlohmann::ordered_json training_report(const std::string& directory, int worst);

}  // namespace nmt::app
