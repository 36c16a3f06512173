#include "text/vocabulary/charsmap.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

namespace nmt {

namespace {

/// The trie of a table: a double array of Darts-clone (Yata 2007). The children of a node are at
/// `node xor offset xor byte`, each labeled with that byte; its value is at `node xor offset`.
class Trie {
 public:
  /// `units`: the 32-bit words of the array. Values must be below `values`.
  Trie(std::string_view units, std::size_t values)
      : units_(units.size() / 4), values_(values), matches_(units_.size()) {
    std::memcpy(units_.data(), units.data(), units.size());
  }
  bool is_sound() { return matches_from(0, 0) <= kMaxMatches; }

 private:
  // SentencePiece allocates 32 matches per prefix search but reads as many as the trie returns.
  static constexpr int kMaxMatches = 32, kMaxDepth = 1000, kUnsound = kMaxMatches + 1;
  static constexpr std::uint8_t kUnseen = 0, kOpen = 255;

  /// Maximum number of values on a path down from a node, including its own; kUnsound when a path
  /// leaves the array or has a cycle.
  int matches_from(std::size_t node, int depth) {
    std::uint8_t& known = matches_[node];
    if (known == kOpen || depth > kMaxDepth) return kUnsound;
    if (known != kUnseen) return known - 1;
    known = kOpen;
    const std::uint32_t unit = units_[node];
    const std::size_t base = node ^ (std::size_t{unit >> 10} << ((unit & 0x200) >> 6));
    // A child index would be out of bounds.
    if ((base | 0xFF) >= units_.size()) return kUnsound;
    const bool has_value = node > 0 && (unit & 0x100);  // the value of the root is never read
    if (has_value && (units_[base] & 0x7FFFFFFF) >= values_) return kUnsound;
    int max_matches = 0;
    for (const std::uint8_t byte : labels_of(base))
      max_matches = std::max(max_matches, matches_from(base ^ byte, depth + 1));
    max_matches = std::min(max_matches + has_value, kUnsound);
    known = static_cast<std::uint8_t>(max_matches + 1);
    return max_matches;
  }
  /// The labels of a node's children, from the 256 words in which they lie. Most nodes have few.
  std::vector<std::uint8_t> labels_of(std::size_t base) const {
    const std::uint32_t* const words = units_.data() + (base & ~std::size_t{0xFF});
    const auto first = static_cast<std::uint32_t>(base & 0xFF);
    std::array<std::uint8_t, 256> is_child;
    for (std::uint32_t i = 0; i < 256; ++i)
      is_child[i] = (words[i] & 0x800000FF) == (i ^ first) ? 1 : 0;
    std::vector<std::uint8_t> labels;
    const std::uint8_t* const end = is_child.data() + is_child.size();
    for (const std::uint8_t* at = is_child.data(); at < end; ++at) {
      at = static_cast<const std::uint8_t*>(std::memchr(at, 1, static_cast<std::size_t>(end - at)));
      if (!at) break;
      labels.push_back(static_cast<std::uint8_t>((at - is_child.data()) ^ first));
    }
    return labels;
  }

  std::vector<std::uint32_t> units_;
  std::size_t values_;
  // Per node: kUnseen, kOpen, or the result of matches_from() plus 1.
  std::vector<std::uint8_t> matches_;
};

}  // namespace

// The size of the trie, the trie, and the NUL-terminated replacements that its values point to.
bool charsmap_is_sound(std::string_view table) {
  if (table.empty()) return true;
  std::uint32_t trie_bytes = 0;
  if (table.size() <= sizeof trie_bytes) return false;
  std::memcpy(&trie_bytes, table.data(), sizeof trie_bytes);
  table.remove_prefix(sizeof trie_bytes);
  if (trie_bytes == 0 || trie_bytes % 4 != 0 || trie_bytes >= table.size() || table.back() != '\0')
    return false;
  return Trie(table.substr(0, trie_bytes), table.size() - trie_bytes).is_sound();
}

}  // namespace nmt
