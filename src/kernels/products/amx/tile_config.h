#pragma once

#include <cstdint>

namespace nmt::kernels {

constexpr int tile_count = 8, max_tile_rows = 16, max_tile_bytes = 64;

/// The operand of LDTILECFG: the shapes of the tiles. A tile with 0 rows and bytes cannot be used.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  void set(int tile, std::int64_t tile_rows, std::int64_t bytes) {
    rows[tile] = static_cast<std::uint8_t>(tile_rows);
    row_bytes[tile] = static_cast<std::uint16_t>(bytes);
  }
};
static_assert(sizeof(TileConfig) == 64);

/// The tiles of a product: 0 to 3 sum products of A, 4 and 5, with B, 6 and 7. A and C have `rows`
/// rows, A rows of `depth` groups of four bytes, B `depth` rows; C and B have 16 columns.
inline TileConfig product_tiles(std::int64_t rows, std::int64_t depth) {
  TileConfig config;
  for (int c = 0; c < 4; ++c) config.set(c, rows, max_tile_bytes);
  for (int a = 4; a < 6; ++a) config.set(a, rows, 4 * depth);
  for (int b = 6; b < 8; ++b) config.set(b, depth, max_tile_bytes);
  return config;
}

/// Tiles configured while it lives. Released tiles cost no time in a context switch.
template <class Tiles>
class TileSession {
 public:
  explicit TileSession(const TileConfig& config) { Tiles::configure(config); }
  ~TileSession() { Tiles::release(); }
  TileSession(const TileSession&) = delete;
  TileSession& operator=(const TileSession&) = delete;
};

/// `rows` rows in the fewest tiles, of an even height. Only the last tile may have unused rows.
struct RowTiles {
  explicit RowTiles(std::int64_t rows)
      : count((rows + max_tile_rows - 1) / max_tile_rows), height((rows + count - 1) / count) {}
  std::int64_t count, height;
};

}  // namespace nmt::kernels
