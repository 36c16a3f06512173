#pragma once

#include "kernels/products/amx/tile_config.h"

#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

// The innermost block of a product in tiles, over a whole stretch of k. Two by two tiles of sums
// need four loads for four products. Everything here has internal linkage, because the including
// file is compiled for several instruction sets.

namespace nmt::kernels {
namespace {

enum class TileElements { bfloat16, int8 };

/// Matrices as tiles; all distances are in bytes. A step along k is 64 bytes of a row of A and 16
/// rows of B; columns of B and C are tiles of 64 bytes.
struct TileBlock {
  std::int64_t steps = 0;
  const char* a = nullptr;
  std::int64_t a_row = 0, a_tile = 0;  ///< between rows, between tiles of rows
  const char* b = nullptr;
  std::int64_t b_row = 0, b_step = 0;
  std::int64_t b_tile = 0,
               b_two = 0;   ///< from an even tile of columns to the next, to the next even
  std::int64_t b_back = 0;  ///< the last step of B starts earlier by this
  std::int64_t a_part = 0, b_part = 0;  ///< between the parts of a number (round_to_parts())
  bool accumulate = false;
  char* c = nullptr;
  std::int64_t c_row = 0, c_tile = 0;  ///< between rows, between tiles of rows
  /// Not null: as many rows of C, `ahead_row` bytes apart, which are brought to the second-level
  /// cache while the block computes.
  const char* ahead = nullptr;
  std::int64_t ahead_row = 0;
};

/// Calls body(0) to body(n - 1) with constants.
template <int n, class Body>
[[gnu::always_inline]] inline void for_each_tile(const Body& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (body(std::integral_constant<int, i>()), ...);
  }
  (std::make_integer_sequence<int, n>());
}

/// A part of A and one of B that are multiplied.
struct PartProduct {
  int a, b;
};
/// The products of numbers in one part, and in three: without those below 2^-26 of the whole
/// product. Two in a row share a part where they can, whose tiles are then loaded once.
template <int parts>
inline constexpr PartProduct part_products[] = {{0, 0}};
template <>
inline constexpr PartProduct part_products<3>[] = {{2, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 2}, {0, 0}};

/// C (+)= A B for `rows` x `columns` tiles, configured by product_tiles().
template <class Tiles, TileElements elements, int rows, int columns, int parts = 1>
void tile_block(const TileBlock& block) {
  static_assert(rows <= 2 && rows * columns <= 4);
  // Calls body(sum, place) with the number of each tile of C.
  const auto for_each_sum = [&](const auto& body) {
    for_each_tile<rows * columns>([&](auto sum) {
      body(sum, block.c + sum / columns * block.c_tile + sum % columns * max_tile_bytes);
    });
  };
  for_each_sum([&](auto sum, const char* from) {
    if (block.accumulate)
      Tiles::template load<sum>(from, block.c_row);
    else
      Tiles::template zero<sum>();
  });
  const char *a = block.a, *b = block.b, *ahead = block.ahead;
  const std::int64_t ahead_rows = (rows * max_tile_rows + block.steps - 1) / block.steps;
  for (std::int64_t step = 0; step < block.steps; ++step, a += max_tile_bytes, b += block.b_step) {
    if (step + 1 == block.steps) b -= block.b_back;
    if (ahead)
      for (std::int64_t row = 0; row < ahead_rows; ++row, ahead += block.ahead_row)
        for (int column = 0; column < columns; ++column)
          __builtin_prefetch(ahead + column * max_tile_bytes, 0, 2);
    for_each_tile<static_cast<int>(std::size(part_products<parts>))>([&](auto product) {
      constexpr int i = product, before = i == 0 ? i : i - 1;
      constexpr const auto& of = part_products<parts>;
      constexpr bool next_a = i == 0 || of[i].a != of[before].a,
                     next_b = i == 0 || of[i].b != of[before].b;
      const char* const from_a = a + of[i].a * block.a_part;
      const char* const from_b = b + of[i].b * block.b_part;
      if constexpr (next_a)
        for_each_tile<rows>([&](auto row) {
          Tiles::template load<4 + row>(from_a + row * block.a_tile, block.a_row);
        });
      for_each_tile<columns>([&](auto column) {
        constexpr int j = column, b_tile = 6 + j % 2;
        if constexpr (next_b || columns > 2)
          Tiles::template load<b_tile>(from_b + j / 2 * block.b_two + j % 2 * block.b_tile,
                                       block.b_row);
        for_each_tile<rows>([&](auto row) {
          constexpr int sum = row * columns + j;
          if constexpr (elements == TileElements::bfloat16)
            Tiles::template add_bfloat16<sum, 4 + row, b_tile>();
          else
            Tiles::template add_int8<sum, 4 + row, b_tile>();
        });
      });
    });
  }
  for_each_sum([&](auto sum, char* to) { Tiles::template store<sum>(to, block.c_row); });
}

}  // namespace
}  // namespace nmt::kernels
