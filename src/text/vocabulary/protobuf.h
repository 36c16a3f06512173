#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace nmt {

/// Iterates over the fields of a protocol buffer message (wire format).
class ProtobufFields {
 public:
  explicit ProtobufFields(std::string_view message) : left_(message) {}

  struct Field {
    std::uint64_t number;
    std::string_view bytes;   // contents of a length-delimited field; else empty
    std::uint64_t value = 0;  // of a varint or a 32-bit field; else 0
  };
  /// The next field; nothing at the end or when the message is malformed.
  std::optional<Field> next() {
    const auto tag = varint();
    if (!tag || *tag > 0xFFFFFFFF) return {};
    switch (*tag & 7) {
      case 0: {
        const auto value = varint();
        return value ? std::optional(Field{*tag >> 3, {}, *value}) : std::nullopt;
      }
      case 1: return take(8) ? std::optional(Field{*tag >> 3, {}}) : std::nullopt;
      case 5: {
        const auto bytes = take(4);
        if (!bytes) return {};
        std::uint64_t value = 0;
        for (const char byte : {(*bytes)[3], (*bytes)[2], (*bytes)[1], (*bytes)[0]})
          value = value << 8 | static_cast<unsigned char>(byte);
        return Field{*tag >> 3, {}, value};
      }
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

}  // namespace nmt
