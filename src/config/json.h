#pragma once

#include "config/option.h"

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace nmt::config {

/// The current values of options by name, for the copy stored in a model directory. Shorthands are
/// omitted.
nlohmann::ordered_json to_json(const std::vector<Option>& fields);

/// Reads options written by to_json(): config::from_json(json["model"], fields(spec),
/// "dir/config.json"). A missing field keeps its default, so that models of older versions can be
/// read; a field that is chosen by corpus size is required. Errors (data), in one line with `name`:
/// all unknown fields; missing required fields; values of another type or out of range.
void from_json(const nlohmann::ordered_json& json, const std::vector<Option>& fields,
               const std::string& name);
void from_json(const nlohmann::json& json, const std::vector<Option>& fields,
               const std::string& name);

}  // namespace nmt::config
