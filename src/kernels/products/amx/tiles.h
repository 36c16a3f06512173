#pragma once

#include "kernels/products/amx/tile_config.h"

#include <cstdint>

// The instructions of AMX as inline assembly, because g++ 12 turns the tile number of its
// intrinsics into text and thus takes no template parameter. Needs no -mamx option. Code that uses
// tiles is a template over this type, so that tests run it on a processor without AMX
// (tests/kernels/amx/emulated_tiles.h).

namespace nmt::kernels {

#if defined(__x86_64__)
struct AmxTiles {
  /// Also sets all tiles to zero.
  static void configure(const TileConfig& config) { asm volatile("ldtilecfg %0" : : "m"(config)); }
  static void release() { asm volatile("tilerelease"); }

  template <int tile>
  static void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(tile));
  }
  /// Rows are `stride` bytes apart.
  template <int tile>
  static void load(const void* from, std::int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(tile) : "memory");
  }
  template <int tile>
  static void store(void* to, std::int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(tile) : "memory");
  }
  /// TDPBF16PS: C += A B of pairs of bfloat16, sums in float32.
  template <int c, int a, int b>
  static void add_bfloat16() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b));
  }
  /// TDPBSUD: C += A B of groups of four signed (A) and unsigned (B) bytes, sums in int32.
  template <int c, int a, int b>
  static void add_int8() {
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b));
  }
};
#endif

}  // namespace nmt::kernels
