#pragma once

#include "core/error.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace nmt {

/// FNV-1a over lines of text; recognizes an unchanged text, protects against nothing.
class LinesHash {
 public:
  void add(std::string_view line) {
    for (const char c : line) mix(static_cast<unsigned char>(c));
    mix('\n');
  }
  std::uint64_t value() const { return hash_; }
  /// 16 hexadecimal digits.
  std::string text() const { return fmt::format("{:016x}", hash_); }

 private:
  void mix(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001b3u; }
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace nmt
