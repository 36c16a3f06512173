#pragma once

#include "kernels/recurrent/unit.h"

#include <map>
#include <string>
#include <vector>

namespace nmt {

/// Finds the unit with this name whose variant matches the options ("reset" -> "after"). Options
/// that no variant of the name has are ignored. Error (usage): no such unit; lists the known ones.
const kernels::Unit& find_unit(const std::string& name,
                               const std::map<std::string, std::string>& options);
/// All names of units.def, once each, in order.
std::vector<std::string> unit_names();

}  // namespace nmt
