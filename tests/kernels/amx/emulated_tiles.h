#pragma once

#include "kernels/products/amx/tile_config.h"

#include <cstdint>

namespace nmt::kernels {

/// The instructions of AMX (AmxTiles) in plain C++, as Intel's manual defines them: Intel 64 and
/// IA-32 Architectures Software Developer's Manual, volume 2, LDTILECFG, TILELOADD, TILESTORED,
/// TILEZERO, TILERELEASE, TDPBF16PS and TDPBSUD. Each thread has tiles of its own. Error: whatever
/// raises an exception on a processor throws nmt::Error: a wrong configuration, a tile that is not
/// configured, operands whose shapes do not match or that are the same tile.
struct EmulatedTiles {
  static void configure(const TileConfig& config);
  static void release();

  template <int tile>
  static void zero() {
    zero_tile(tile);
  }
  template <int tile>
  static void load(const void* from, std::int64_t stride) {
    load_tile(tile, from, stride);
  }
  template <int tile>
  static void store(void* to, std::int64_t stride) {
    store_tile(tile, to, stride);
  }
  template <int c, int a, int b>
  static void add_bfloat16() {
    add_bfloat16_tiles(c, a, b);
  }
  template <int c, int a, int b>
  static void add_int8() {
    add_int8_tiles(c, a, b);
  }

  /// Instructions of this thread since it started.
  struct Counts {
    std::int64_t configured = 0, released = 0, products = 0;
  };
  static Counts counts();

 private:
  static void zero_tile(int tile);
  static void load_tile(int tile, const void* from, std::int64_t stride);
  static void store_tile(int tile, void* to, std::int64_t stride);
  static void add_bfloat16_tiles(int c, int a, int b);
  static void add_int8_tiles(int c, int a, int b);
};

}  // namespace nmt::kernels
