#include "nn/unit_registry.h"

#include "core/error.h"
#include "kernels/recurrent/matrix_state.h"

#include <algorithm>
#include <sstream>

#include <fmt/ranges.h>

namespace nmt {
namespace {

std::vector<const kernels::Unit*> all_units() {
  std::vector<const kernels::Unit*> all;
  for (const kernels::Unit& unit : kernels::units()) all.push_back(&unit);
  for (const kernels::Unit& unit : kernels::matrix_state_units()) all.push_back(&unit);
  return all;
}

// Whether every option=value of the variant agrees with the options given.
bool agrees(const char* variant, const std::map<std::string, std::string>& options) {
  std::istringstream words(variant);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const auto option = options.find(word.substr(0, equals));
    if (option != options.end() && option->second != word.substr(equals + 1)) return false;
  }
  return true;
}

}  // namespace

const kernels::Unit& find_unit(const std::string& name,
                               const std::map<std::string, std::string>& options) {
  bool known = false;
  for (const kernels::Unit* unit : all_units()) {
    if (unit->name != name) continue;
    known = true;
    if (agrees(unit->variant, options)) return *unit;
  }
  if (known)
    fail(ExitStatus::usage, "unit {} has no variant with these options: {}", name,
         fmt::join(options, ", "));
  fail(ExitStatus::usage, "unknown unit '{}'; known: {}", name, fmt::join(unit_names(), ", "));
}

std::vector<std::string> unit_names() {
  std::vector<std::string> names;
  for (const kernels::Unit* unit : all_units())
    if (std::find(names.begin(), names.end(), unit->name) == names.end())
      names.emplace_back(unit->name);
  return names;
}

}  // namespace nmt
