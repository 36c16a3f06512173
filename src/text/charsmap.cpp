#include "text/charsmap.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

namespace nmt {

namespace {

// Field numbers of sentencepiece_model.proto.
constexpr std::uint64_t kNormalizer = 3, kDenormalizer = 5, kCharsmap = 2;

/// Iterates over the fields of a protocol buffer message (wire format).
class Fields {
 public:
  explicit Fields(std::string_view message) : left_(message) {}

  struct Field {
    std::uint64_t number;
    std::string_view bytes;  // contents of a length-delimited field; else empty
  };
  /// The next field; nothing at the end or when the message is malformed.
  std::optional<Field> next() {
    const auto tag = varint();
    if (!tag || *tag > 0xFFFFFFFF) return {};
    switch (*tag & 7) {
      case 0: return varint() ? std::optional(Field{*tag >> 3, {}}) : std::nullopt;
      case 1: return take(8) ? std::optional(Field{*tag >> 3, {}}) : std::nullopt;
      case 5: return take(4) ? std::optional(Field{*tag >> 3, {}}) : std::nullopt;
      case 2:
        if (const auto size = varint()) {
          if (const auto bytes = take(*size)) return Field{*tag >> 3, *bytes};
        }
    }
    whole_ = false;
    return {};
  }
  /// Whether the whole message was parsed; call after the last field.
  bool whole() const { return whole_ && left_.empty(); }

 private:
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(left_.front());
      left_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    return {};
  }
  std::optional<std::string_view> take(std::uint64_t size) {
    if (size > left_.size()) return {};
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }
  std::string_view left_;
  bool whole_ = true;
};

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
    int most = 0;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      const std::size_t child = base ^ byte;
      if ((units_[child] & 0x800000FF) == byte)
        most = std::max(most, matches_from(child, depth + 1));
    }
    most = std::min(most + has_value, kUnsound);
    known = static_cast<std::uint8_t>(most + 1);
    return most;
  }
  std::vector<std::uint32_t> units_;
  std::size_t values_;
  // Per node: kUnseen, kOpen, or the result of matches_from() plus 1.
  std::vector<std::uint8_t> matches_;
};

/// Table format: size of the trie, the trie, and the NUL-terminated replacements that its values
/// point to.
bool is_sound(std::string_view table) {
  if (table.empty()) return true;
  std::uint32_t trie_bytes = 0;
  if (table.size() <= sizeof trie_bytes) return false;
  std::memcpy(&trie_bytes, table.data(), sizeof trie_bytes);
  table.remove_prefix(sizeof trie_bytes);
  if (trie_bytes == 0 || trie_bytes % 4 != 0 || trie_bytes >= table.size() || table.back() != '\0')
    return false;
  return Trie(table.substr(0, trie_bytes), table.size() - trie_bytes).is_sound();
}

}  // namespace

bool charsmaps_are_sound(std::string_view model) {
  Fields fields(model);
  while (const auto field = fields.next()) {
    if (field->number != kNormalizer && field->number != kDenormalizer) continue;
    Fields settings(field->bytes);
    while (const auto setting = settings.next()) {
      if (setting->number == kCharsmap && !is_sound(setting->bytes)) return false;
    }
    if (!settings.whole()) return false;
  }
  return fields.whole();
}

}  // namespace nmt
