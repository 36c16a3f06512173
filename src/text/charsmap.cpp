#include "charsmap.h"

#include <cstdint>
#include <cstring>
#include <optional>

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
    if (!tag) return {};
    switch (*tag & 7) {
      case 0:
        return varint() ? std::optional(Field{*tag >> 3, {}}) : std::nullopt;
      case 1:
        return take(8) ? std::optional(Field{*tag >> 3, {}}) : std::nullopt;
      case 5:
        return take(4) ? std::optional(Field{*tag >> 3, {}}) : std::nullopt;
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

/// A table is the size of a double-array trie, the trie, and NUL-terminated replacements that its values point to. The
/// trie is Darts-clone's (Yata 2007): a node's children stand at `node xor offset xor byte`, its value at `node xor
/// offset`. All 256 places that a byte may lead to are one aligned block, so it is enough that the block is inside.
bool is_sound(std::string_view table) {
  if (table.empty()) return true;
  std::uint32_t trie_bytes = 0;
  if (table.size() <= sizeof trie_bytes) return false;
  std::memcpy(&trie_bytes, table.data(), sizeof trie_bytes);
  table.remove_prefix(sizeof trie_bytes);
  if (trie_bytes == 0 || trie_bytes % 4 != 0 || trie_bytes >= table.size() || table.back() != '\0') return false;
  const std::size_t units = trie_bytes / 4, replacements = table.size() - trie_bytes;
  const auto unit_at = [&](std::size_t i) {
    std::uint32_t unit;
    std::memcpy(&unit, table.data() + 4 * i, sizeof unit);
    return unit;
  };
  for (std::size_t i = 0; i < units; ++i) {
    const std::uint32_t unit = unit_at(i);
    if (unit >> 31) continue;  // a value: no byte leads here
    const std::size_t offset = std::size_t{unit >> 10} << ((unit & 0x200) >> 6);
    const std::size_t base = i ^ offset;
    if ((base | 0xFF) >= units) return false;
    const bool has_value = unit & 0x100;
    if (has_value && (unit_at(base) & 0x7FFFFFFF) >= replacements) return false;
  }
  return true;
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
