#include "config/messages/nearest.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace nmt::config {
namespace {

constexpr std::size_t longest_name = 64;

// Insertions, deletions, replacements and swaps of neighbors that make b from a (optimal string
// alignment), both of at most longest_name bytes.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::array<std::size_t, longest_name + 1> rows[3];
  auto *before = &rows[0], *above = &rows[1], *row = &rows[2];  // of a[..i-2], a[..i-1], a[..i]
  for (std::size_t j = 0; j <= b.size(); ++j) (*above)[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    (*row)[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = (*above)[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      (*row)[j] = std::min({(*above)[j] + 1, (*row)[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        (*row)[j] = std::min((*row)[j], (*before)[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return (*above)[b.size()];
}

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& known) {
  if (name.size() > longest_name) return "";
  std::string best;
  // One or two letters are near to any short name.
  std::size_t smallest =
      std::max<std::size_t>(std::min<std::size_t>(2, name.size() / 2), name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    // The distance is at least the difference of the lengths.
    const std::size_t longer = std::max(name.size(), candidate.size()),
                      shorter = std::min(name.size(), candidate.size());
    if (longer - shorter >= smallest || longer > longest_name) continue;
    if (const std::size_t d = edit_distance(name, candidate); d < smallest)
      smallest = d, best = candidate;
  }
  return best;
}

}  // namespace nmt::config
