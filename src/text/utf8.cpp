#include "text/utf8.h"

#include <cstdint>
#include <cstring>

namespace nmt {

namespace {

struct Sequence {
  std::size_t length;  // bytes of the character, or of the maximal ill-formed part
  bool valid;
};

/// The first sequence of a non-empty text (Unicode 15, table 3-7).
Sequence first_sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The range of the second byte excludes overlong forms, surrogates and code points above
  // U+10FFFF.
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {i, false};
    const bool fits = i == 1 ? byte(i) >= low && byte(i) <= high : (byte(i) & 0xC0) == 0x80;
    if (!fits) return {i, false};
  }
  return {length, true};
}

}  // namespace

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (text.size() - at >= 8) {  // eight ASCII bytes at once
      std::uint64_t word;
      std::memcpy(&word, text.data() + at, 8);
      if ((word & 0x8080808080808080u) == 0) {
        at += 8;
        continue;
      }
    }
    const Sequence sequence = first_sequence(text.substr(at));
    if (!sequence.valid) return at;
    at += sequence.length;
  }
  return at;
}

std::size_t repair_utf8(std::string_view text, std::string& out) {
  out.clear();
  std::size_t replaced = 0;
  while (!text.empty()) {
    const std::size_t good = valid_utf8_prefix(text);
    out.append(text.substr(0, good));
    text.remove_prefix(good);
    if (text.empty()) break;
    out += "\xEF\xBF\xBD";
    ++replaced;
    text.remove_prefix(first_sequence(text).length);
  }
  return replaced;
}

}  // namespace nmt
