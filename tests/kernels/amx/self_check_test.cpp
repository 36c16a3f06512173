// The check before the first use of AMX: emulated tiles pass it, and tiles with any fault do not.

#include "kernels/products/amx/self_check.h"

#include "tests/kernels/amx/emulated_tiles.h"

#include <string>

#include <gtest/gtest.h>

namespace nmt::kernels {
namespace {

enum class Fault {
  none,
  wrong_accumulator,
  other_operand,
  no_accumulation,
  stride,
  second_step,
};

template <Fault fault>
struct FaultyTiles : EmulatedTiles {
  template <int tile>
  static void load(const void* from, std::int64_t stride) {
    EmulatedTiles::load<tile>(from, fault == Fault::stride && tile == 7 ? stride / 2 : stride);
  }
  template <int tile>
  static void store(void* to, std::int64_t stride) {
    EmulatedTiles::store<fault == Fault::wrong_accumulator ? tile ^ 1 : tile>(to, stride);
  }
  template <int c, int a, int b>
  static void add_bfloat16() {
    add<c, a, b>([]<int x, int y, int z>() { EmulatedTiles::add_bfloat16<x, y, z>(); });
  }
  template <int c, int a, int b>
  static void add_int8() {
    add<c, a, b>([]<int x, int y, int z>() { EmulatedTiles::add_int8<x, y, z>(); });
  }

 private:
  template <int c, int a, int b, class Add>
  static void add(const Add& product) {
    if (fault == Fault::no_accumulation) EmulatedTiles::zero<c>();
    if (fault == Fault::second_step && c == 3 && ++products % 2 == 0) return;
    if constexpr (fault == Fault::other_operand)
      product.template operator()<c, a ^ 1, b>();
    else
      product.template operator()<c, a, b>();
  }
  static inline int products = 0;
};

template <Fault fault>
bool int8_passes() {
  return tiles_pass_check<FaultyTiles<fault>, TileElements::int8>();
}
template <Fault fault>
bool bfloat16_passes() {
  return tiles_pass_check<FaultyTiles<fault>, TileElements::bfloat16>();
}

TEST(TileCheck, PassesTilesThatFollowTheirDefinition) {
  EXPECT_TRUE(int8_passes<Fault::none>());
  EXPECT_TRUE(bfloat16_passes<Fault::none>());
}

TEST(TileCheck, FindsEveryFaultAndWarns) {
  testing::internal::CaptureStderr();
  EXPECT_FALSE(int8_passes<Fault::wrong_accumulator>());
  EXPECT_FALSE(int8_passes<Fault::other_operand>());
  EXPECT_FALSE(int8_passes<Fault::no_accumulation>());
  EXPECT_FALSE(int8_passes<Fault::stride>());
  EXPECT_FALSE(int8_passes<Fault::second_step>());
  EXPECT_FALSE(bfloat16_passes<Fault::wrong_accumulator>());
  EXPECT_FALSE(bfloat16_passes<Fault::other_operand>());
  EXPECT_FALSE(bfloat16_passes<Fault::no_accumulation>());
  EXPECT_FALSE(bfloat16_passes<Fault::stride>());
  EXPECT_FALSE(bfloat16_passes<Fault::second_step>());
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("AMX is not used for int8"), said.npos) << said;
  EXPECT_NE(said.find("AMX is not used for bfloat16"), said.npos) << said;
}

}  // namespace
}  // namespace nmt::kernels
