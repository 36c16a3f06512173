#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace nmt::tools {

/// The known name nearest by edit distance (insertions, deletions, replacements: Levenshtein 1966); "" when none is
/// within a third of the name's length.
inline std::string nearest(std::string_view name, const std::vector<std::string>& known) {
  std::string best;
  std::size_t least = name.size() / 3 + 1;
  for (const std::string& candidate : known) {
    std::vector<std::size_t> row(candidate.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= name.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j < row.size(); ++j) {
        const std::size_t replaced = diagonal + (name[i - 1] != candidate[j - 1]);
        diagonal = row[j];
        row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
      }
    }
    if (row.back() < least) {
      least = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace nmt::tools
