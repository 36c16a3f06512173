#include "tests/kernels/amx/emulated_tiles.h"

#include "core/error.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>

namespace nmt::kernels {
namespace {

struct Tile {
  int rows = 0, bytes = 0;  // of a row
  std::uint8_t data[max_tile_rows][max_tile_bytes] = {};

  template <class Element>
  Element at(int row, int element) const {
    Element value;
    std::memcpy(&value, data[row] + element * static_cast<int>(sizeof value), sizeof value);
    return value;
  }
  template <class Element>
  void put(int row, int element, Element value) {
    std::memcpy(data[row] + element * static_cast<int>(sizeof value), &value, sizeof value);
  }
};

struct State {
  bool configured = false;
  Tile tiles[tile_count];
  EmulatedTiles::Counts counts;
};
thread_local State state;

Tile& configured_tile(int number) {
  NMT_CHECK(state.configured, "tmm{}: no tiles are configured", number);
  Tile& tile = state.tiles[number];
  NMT_CHECK(tile.rows > 0, "tmm{} is not configured", number);
  return tile;
}

struct Operands {
  Tile &c, &a, &b;

  Operands(int c_number, int a_number, int b_number)
      : c(configured_tile(c_number)), a(configured_tile(a_number)), b(configured_tile(b_number)) {
    NMT_CHECK(c_number != a_number && c_number != b_number && a_number != b_number,
              "tmm{} = tmm{} tmm{}: an operand is used twice", c_number, a_number, b_number);
    NMT_CHECK(c.rows == a.rows && c.bytes == b.bytes && a.bytes == 4 * b.rows && c.bytes % 4 == 0,
              "tmm{} [{},{} bytes] = tmm{} [{},{}] tmm{} [{},{}]: shapes do not match", c_number,
              c.rows, c.bytes, a_number, a.rows, a.bytes, b_number, b.rows, b.bytes);
    ++state.counts.products;
  }
};

// Denormals are zero, both read (DAZ) and written (FTZ).
[[gnu::always_inline]] inline float flushed(float x) {
  return std::abs(x) < FLT_MIN ? std::copysign(0.0f, x) : x;
}

[[gnu::always_inline]] inline float as_float(std::uint16_t bfloat16) {
  return flushed(std::bit_cast<float>(std::uint32_t{bfloat16} << 16));
}

// c + a b with one rounding to nearest even. A result is denormal if it is below FLT_MIN when
// rounded with an unbounded exponent, which the second product is for.
[[gnu::always_inline]] inline float fused(float a, float b, float c) {
  const float sum = std::fma(a, b, c);
  if (std::abs(sum) == FLT_MIN &&
      std::abs(std::fma(a * 0x1p24f, b, c * 0x1p24f)) < FLT_MIN * 0x1p24f)
    return std::copysign(0.0f, sum);
  return flushed(sum);
}

[[gnu::always_inline]] inline float added(float a, float b) {
  return flushed(flushed(a) + flushed(b));
}

[[gnu::always_inline]] inline void add_pairs(const Operands& on) {
  const int pairs = on.a.bytes / 4, columns = on.c.bytes / 4;
  float a[max_tile_rows][2 * max_tile_rows], b[2 * max_tile_rows][max_tile_rows];
  for (int k = 0; k < 2 * pairs; ++k) {
    for (int m = 0; m < on.c.rows; ++m) a[m][k] = as_float(on.a.at<std::uint16_t>(m, k));
    for (int n = 0; n < columns; ++n)
      b[k][n] = as_float(on.b.at<std::uint16_t>(k / 2, 2 * n + k % 2));
  }
  for (int m = 0; m < on.c.rows; ++m)
    for (int n = 0; n < columns; ++n) {
      float even = 0, odd = 0;
      for (int k = 0; k < pairs; ++k) {
        even = fused(a[m][2 * k], b[2 * k][n], even);
        odd = fused(a[m][2 * k + 1], b[2 * k + 1][n], odd);
      }
      on.c.put(m, n, added(on.c.at<float>(m, n), added(even, odd)));
    }
}
#if defined(__x86_64__)
// Without a call of the library for each fused multiply-add: many times as fast.
[[gnu::target("fma")]] void add_with_fma(const Operands& on) {
  add_pairs(on);
}
#endif

}  // namespace

void EmulatedTiles::configure(const TileConfig& config) {
  NMT_CHECK(config.palette == 1 && config.start_row == 0, "LDTILECFG: palette {}, start row {}",
            config.palette, config.start_row);
  for (const std::uint8_t byte : config.reserved)
    NMT_CHECK(byte == 0, "LDTILECFG: a reserved byte is {}", byte);
  for (int i = 0; i < 16; ++i) {
    const int rows = config.rows[i], bytes = config.row_bytes[i];
    NMT_CHECK(rows <= max_tile_rows && bytes <= max_tile_bytes && (rows == 0) == (bytes == 0) &&
                  (i < tile_count || rows == 0),
              "LDTILECFG: tmm{} has {} rows of {} bytes", i, rows, bytes);
    if (i >= tile_count) continue;
    state.tiles[i] = Tile{};
    state.tiles[i].rows = rows;
    state.tiles[i].bytes = bytes;
  }
  state.configured = true;
  ++state.counts.configured;
}

void EmulatedTiles::release() {
  NMT_CHECK(state.configured, "TILERELEASE of tiles that are not configured");
  state.configured = false;
  ++state.counts.released;
}

EmulatedTiles::Counts EmulatedTiles::counts() {
  return state.counts;
}

void EmulatedTiles::zero_tile(int tile) {
  std::memset(configured_tile(tile).data, 0, sizeof(Tile::data));
}

void EmulatedTiles::load_tile(int number, const void* from, std::int64_t stride) {
  Tile& tile = configured_tile(number);
  std::memset(tile.data, 0, sizeof tile.data);
  for (int row = 0; row < tile.rows; ++row)
    std::memcpy(tile.data[row], static_cast<const char*>(from) + row * stride,
                static_cast<std::size_t>(tile.bytes));
}

void EmulatedTiles::store_tile(int number, void* to, std::int64_t stride) {
  const Tile& tile = configured_tile(number);
  for (int row = 0; row < tile.rows; ++row)
    std::memcpy(static_cast<char*>(to) + row * stride, tile.data[row],
                static_cast<std::size_t>(tile.bytes));
}

void EmulatedTiles::add_bfloat16_tiles(int c, int a, int b) {
#if defined(__x86_64__)
  static const bool has_fma = __builtin_cpu_supports("fma");
  if (has_fma) return add_with_fma(Operands(c, a, b));
#endif
  add_pairs(Operands(c, a, b));
}

void EmulatedTiles::add_int8_tiles(int c, int a, int b) {
  const Operands on(c, a, b);
  for (int m = 0; m < on.c.rows; ++m)
    for (int n = 0; n < on.c.bytes / 4; ++n) {
      std::uint32_t sum = on.c.at<std::uint32_t>(m, n);  // wraps around
      for (int k = 0; k < on.a.bytes; ++k)
        sum += static_cast<std::uint32_t>(on.a.at<std::int8_t>(m, k) *
                                          on.b.at<std::uint8_t>(k / 4, 4 * n + k % 4));
      on.c.put(m, n, sum);
    }
}

}  // namespace nmt::kernels
