#include "core/checksum.h"

#include <array>
#include <cstddef>
#include <cstring>

namespace nmt {
namespace {

// tables[k][b]: contribution of byte b when k more bytes follow it ("slicing by 8", Kounavis &
// Berry 2005).
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ (rest & 1 ? 0xEDB88320u : 0u);
    tables[0][byte] = rest;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = tables[k - 1][byte] >> 8 ^ tables[0][tables[k - 1][byte] & 0xff];
  return tables;
}

constexpr Tables tables = make_tables();

}  // namespace

std::uint32_t crc32(std::string_view bytes, std::uint32_t before) {
  std::uint32_t rest = ~before;
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    std::uint32_t low = 0, high = 0;
    std::memcpy(&low, at, 4);
    std::memcpy(&high, at + 4, 4);
    low ^= rest;  // all supported targets are little-endian
    rest = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
           tables[4][low >> 24] ^ tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff] ^
           tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
  }
  for (; left > 0; --left, ++at)
    rest = rest >> 8 ^ tables[0][(rest ^ static_cast<unsigned char>(*at)) & 0xff];
  return ~rest;
}

}  // namespace nmt
