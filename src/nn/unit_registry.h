#pragma once

#include "kernels/recurrent/unit.h"

#include <map>
#include <string>
#include <vector>

namespace nmt {

/// The unit of that name whose variant agrees with the options ("reset" -> "after"); options that
/// no line of the name knows do not matter. Error (usage): no such unit; lists the known ones.
const kernels::Unit& find_unit(const std::string& name,
                               const std::map<std::string, std::string>& options);
/// All names of units.def, once each, in order.
std::vector<std::string> unit_names();

}  // namespace nmt
