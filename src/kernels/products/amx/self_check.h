#pragma once

#include "core/log.h"
#include "kernels/products/amx/blocks.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

// A block of tiles against plain C++, once, before a process uses AMX: a processor on which they
// differ gets the products without AMX and a warning, never wrong results. Everything here has
// internal linkage, as in blocks.h.

namespace nmt::kernels {
namespace {

// The elements of A and B, the sums, and small values of all signs whose sums are exact.
template <TileElements elements>
struct CheckedElements;
template <>
struct CheckedElements<TileElements::int8> {
  using A = std::int8_t;
  using B = std::uint8_t;
  using Sum = std::int32_t;
  static A a(std::int64_t i) { return static_cast<A>(i * 37 % 255 - 127); }
  static B b(std::int64_t i) { return static_cast<B>(i * 53 % 256); }
  static Sum product(A x, B y) { return Sum{x} * Sum{y}; }
};
template <>
struct CheckedElements<TileElements::bfloat16> {
  using A = std::uint16_t;
  using B = std::uint16_t;
  using Sum = float;
  static float value(std::uint16_t upper) {
    const std::uint32_t bits = std::uint32_t{upper} << 16;
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
  }
  static std::uint16_t of(std::int64_t integer) {
    const auto x = static_cast<float>(integer);
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return static_cast<std::uint16_t>(bits >> 16);
  }
  static A a(std::int64_t i) { return of(i * 37 % 31 - 15); }
  static B b(std::int64_t i) { return of(i * 53 % 29 - 14); }
  static Sum product(A x, B y) { return value(x) * value(y); }
};

/// Whether C += A B has the right sums: two by two tiles of C, two steps along k, tiles of 13 rows.
template <class Tiles, TileElements elements>
bool tiles_are_right() {
  using Elements = CheckedElements<elements>;
  using Sum = typename Elements::Sum;
  constexpr std::int64_t height = 13, rows = 2 * height, columns = 32, steps = 2,
                         group = 4 / static_cast<std::int64_t>(sizeof(typename Elements::A)),
                         step_groups = max_tile_bytes / 4, groups = steps * step_groups;
  alignas(64) typename Elements::A a[rows][groups * group];
  alignas(64) typename Elements::B b[groups][columns][group];
  alignas(64) Sum c[rows][columns];
  Sum expected[rows][columns];
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t k = 0; k < groups * group; ++k) a[r][k] = Elements::a(r * 7 + k);
  for (std::int64_t g = 0; g < groups; ++g)
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t i = 0; i < group; ++i) b[g][j][i] = Elements::b(g * 11 + j * 5 + i);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t j = 0; j < columns; ++j) {
      c[r][j] = static_cast<Sum>(r - j);
      expected[r][j] = c[r][j];
      for (std::int64_t k = 0; k < groups * group; ++k)
        expected[r][j] += Elements::product(a[r][k], b[k / group][j][k % group]);
    }
  const TileSession<Tiles> session(product_tiles(height, step_groups));
  tile_block<Tiles, elements, 2, 2>({.steps = steps,
                                     .a = reinterpret_cast<const char*>(a),
                                     .a_row = sizeof a[0],
                                     .a_tile = height * static_cast<std::int64_t>(sizeof a[0]),
                                     .b = reinterpret_cast<const char*>(b),
                                     .b_row = sizeof b[0],
                                     .b_step = step_groups * static_cast<std::int64_t>(sizeof b[0]),
                                     .b_tile = max_tile_bytes,
                                     .accumulate = true,
                                     .c = reinterpret_cast<char*>(c),
                                     .c_row = sizeof c[0],
                                     .c_tile = height * static_cast<std::int64_t>(sizeof c[0])});
  return std::equal(&c[0][0], &c[0][0] + rows * columns, &expected[0][0]);
}

/// tiles_are_right(); if they are not, a warning names them.
template <class Tiles, TileElements elements>
bool tiles_pass_check() {
  if (tiles_are_right<Tiles, elements>()) return true;
  log::warn("AMX is not used for {}: this processor's tiles differ from their definition",
            elements == TileElements::int8 ? "int8" : "bfloat16");
  return false;
}

}  // namespace
}  // namespace nmt::kernels
