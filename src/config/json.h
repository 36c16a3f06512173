#pragma once

#include "config/option.h"

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace nmt::config {

/// The present values of a spec's fields, under their names, for the copy stored with a model.
/// Shorthands are left out.
nlohmann::ordered_json to_json(const std::vector<Option>& fields);

/// Reads them back: config::from_json(json["model"], fields(spec), "dir/config.json"). A field that
/// is missing keeps its default, so that models of an older version can be read; but what is chosen
/// for a corpus has no default then, and must be there. Errors (data), in one line with `name`:
/// unknown fields, all at once; missing ones; values of another type or out of range.
void from_json(const nlohmann::ordered_json& json, const std::vector<Option>& fields,
               const std::string& name);
void from_json(const nlohmann::json& json, const std::vector<Option>& fields,
               const std::string& name);

}  // namespace nmt::config
