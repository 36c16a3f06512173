#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nmt::config {

/// The known name nearest by edit distance (insertions, deletions, replacements, swaps of
/// neighbors); "" if none is near.
std::string nearest(std::string_view name, const std::vector<std::string>& known);

}  // namespace nmt::config
