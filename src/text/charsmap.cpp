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

/// Fields of a protocol buffer message, one after the other (its "wire format").
class Fields {
 public:
  explicit Fields(std::string_view message) : left_(message) {}

  struct Field {
    std::uint64_t number;
    std::string_view bytes;  // of a length-delimited field, else empty
  };
  /// Nothing at the end, or when the message is broken.
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
  /// After the last field: whether all of the message was understood.
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

/// The trie of a table, Darts-clone's double array (Yata 2007): a node's children stand at `node
/// xor offset xor byte`, each with that byte as its label, its value at `node xor offset`.
class Trie {
 public:
  /// `units` are its 32-bit words; values must lie below `values`.
  Trie(std::string_view units, std::size_t values)
      : units_(units.size() / 4), values_(values), matches_(units_.size()) {
    std::memcpy(units_.data(), units.data(), units.size());
  }
  bool is_sound() { return matches_from(0, 0) <= kMostMatches; }

 private:
  // SentencePiece keeps 32 matches of a text's beginning and reads as many as there are.
  static constexpr int kMostMatches = 32, kDeepest = 1000, kUnsound = kMostMatches + 1;
  static constexpr std::uint8_t kUnseen = 0, kOpen = 255;

  /// Most values on a way down from a node, its own among them; kUnsound when a way leads outside
  /// or has no end.
  int matches_from(std::size_t node, int depth) {
    std::uint8_t& known = matches_[node];
    if (known == kOpen || depth > kDeepest) return kUnsound;
    if (known != kUnseen) return known - 1;
    known = kOpen;
    const std::uint32_t unit = units_[node];
    const std::size_t base = node ^ (std::size_t{unit >> 10} << ((unit & 0x200) >> 6));
    if ((base | 0xFF) >= units_.size())
      return kUnsound;                                  // one of the places that a byte may lead to
    const bool has_value = node > 0 && (unit & 0x100);  // nobody asks for the root's
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
  // of every node: kUnseen, kOpen, or what matches_from() says and 1.
  std::vector<std::uint8_t> matches_;
};

/// A table is the size of a trie, the trie, and NUL-terminated replacements that its values point
/// to.
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
