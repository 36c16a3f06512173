#include "core/hash/checksum.h"

#include <array>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

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

// Continues a checksum, whose bits are inverted only outside.
std::uint32_t by_tables(const char* at, std::size_t left, std::uint32_t rest) {
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
  return rest;
}

#if defined(__x86_64__)

// x^n modulo the polynomial, as a factor of carry-less products of reflected numbers.
constexpr long long power(int n) {
  std::uint32_t rest = 0x80000000u;
  for (int i = 0; i < n; ++i) rest = rest >> 1 ^ (rest & 1 ? 0xEDB88320u : 0u);
  return static_cast<long long>(std::uint64_t{rest} << 1);
}

constexpr std::size_t folded_bytes = 64;

// Folds the text into its last 128 bits, 512 bits at a time (Gopal et al. 2009, "Fast CRC
// Computation for Generic Polynomials Using PCLMULQDQ Instruction"), whose checksum is that of the
// text. `left`: at least 64.
[[gnu::target("pclmul,sse4.1")]] std::uint32_t by_folding(const char* at, std::size_t left,
                                                          std::uint32_t rest) {
  constexpr int lanes = 4, width = 16;
  const auto load = [](const char* from) __attribute__((target("pclmul,sse4.1"))) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  };
  // A number of 128 bits moved up by as many bits as the powers say, plus `next`.
  const auto fold =
      [](__m128i x, __m128i powers, __m128i next) __attribute__((target("pclmul,sse4.1"))) {
    const __m128i low = _mm_clmulepi64_si128(x, powers, 0x00),
                  high = _mm_clmulepi64_si128(x, powers, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
  };
  const __m128i by_512 = _mm_set_epi64x(power(512 - 32), power(512 + 32)),
                by_128 = _mm_set_epi64x(power(128 - 32), power(128 + 32));
  __m128i lane[lanes];
  for (int i = 0; i < lanes; ++i) lane[i] = load(at + i * width);
  lane[0] = _mm_xor_si128(lane[0], _mm_cvtsi32_si128(static_cast<int>(rest)));
  for (at += folded_bytes, left -= folded_bytes; left >= folded_bytes;
       at += folded_bytes, left -= folded_bytes)
    for (int i = 0; i < lanes; ++i) lane[i] = fold(lane[i], by_512, load(at + i * width));
  __m128i all = lane[0];
  for (int i = 1; i < lanes; ++i) all = fold(all, by_128, lane[i]);
  char last[width];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(last), all);
  return by_tables(at, left, by_tables(last, width, 0));
}

#endif

}  // namespace

std::uint32_t crc32(std::string_view bytes, std::uint32_t before) {
#if defined(__x86_64__)
  static const bool folds = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  if (folds && bytes.size() >= folded_bytes)
    return ~by_folding(bytes.data(), bytes.size(), ~before);
#endif
  return ~by_tables(bytes.data(), bytes.size(), ~before);
}

}  // namespace nmt
