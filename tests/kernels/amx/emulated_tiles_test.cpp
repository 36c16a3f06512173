// The emulation of AMX against double precision and values computed by hand.

#include "tests/kernels/amx/emulated_tiles.h"

#include "core/error.h"
#include "core/rng.h"
#include "kernels/products/amx/support.h"
#include "kernels/products/amx/tiles.h"
#include "kernels/products/bfloat16.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::kernels {
namespace {

using Tiles = EmulatedTiles;

// c + sum of a[k] b[k] by one TDPBF16PS, for up to 32 k.
float product(float c, const std::vector<float>& a, const std::vector<float>& b) {
  const auto depth = static_cast<std::int64_t>(a.size() + 1) / 2;
  Bfloat16 a_row[32] = {}, b_rows[16][2] = {};
  for (std::size_t k = 0; k < a.size(); ++k) {
    a_row[k] = to_bf16(a[k]);
    b_rows[k / 2][k % 2] = to_bf16(b[k]);
  }
  TileConfig config;
  config.set(0, 1, 4);
  config.set(1, 1, 4 * depth);
  config.set(2, depth, 4);
  const TileSession<Tiles> session(config);
  Tiles::load<0>(&c, 4);
  Tiles::load<1>(a_row, 64);
  Tiles::load<2>(b_rows, 4);
  Tiles::add_bfloat16<0, 1, 2>();
  Tiles::store<0>(&c, 4);
  return c;
}

TEST(EmulatedTiles, SumEvenAndOddElementsByThemselves) {
  EXPECT_EQ(product(10, {2, 3, 4, 5}, {1, 10, 100, 1000}), 10 + 2 + 30 + 400 + 5000);
  // 2^24 + 1 rounds to 2^24 (even), the odd sum keeps 1 + 1.
  EXPECT_EQ(product(0, {0x1p24f, 1, 1, 1}, {1, 1, 1, 1}), 0x1p24f + 2);
  EXPECT_EQ(product(0, {0x1p24f, 1, 1, 0}, {1, 1, 1, 1}), 0x1p24f);
  // C comes last: (2^24 + 1) is not computed one by one.
  EXPECT_EQ(product(0x1p24f, {1, 1}, {1, 1}), 0x1p24f + 2);
  // A product is exact before it is added: (1 + 2^-7)^2 - 1.
  EXPECT_EQ(product(0, {1, 0, 1 + 0x1p-7f}, {-1, 0, 1 + 0x1p-7f}), 0x1p-6f + 0x1p-14f);
  // Also where it is beyond the largest float: 2^128 - 2^127.
  EXPECT_EQ(product(0, {-0x1p127f, 0, 0x1p64f}, {1, 0, 0x1p64f}), 0x1p127f);
}

TEST(EmulatedTiles, TreatDenormalsAsZero) {
  EXPECT_EQ(product(0, {0x1p-127f}, {0x1p100f}), 0.0f);           // read as 0
  EXPECT_EQ(product(0, {0x1p-100f}, {0x1p-27f}), 0.0f);           // written as 0
  EXPECT_EQ(product(0, {0x1p-100f}, {0x1p-26f}), FLT_MIN);        // the smallest that is not
  EXPECT_EQ(product(0x1p-130f, {0.0f}, {1.0f}), 0.0f);            // C is read as 0
  EXPECT_EQ(product(-FLT_MIN, {0x1.8p-100f}, {0x1p-26f}), 0.0f);  // a difference is written as 0
  EXPECT_TRUE(std::isnan(product(0, {INFINITY}, {0.0f})));
  EXPECT_TRUE(std::isnan(product(0, {NAN}, {1.0f})));
  EXPECT_EQ(product(0, {0x1p100f}, {-0x1p100f}), -INFINITY);
}

struct Shape {
  std::int64_t rows, columns, depth;  // depth in groups of four bytes
};
constexpr Shape shapes[] = {{16, 16, 16}, {1, 16, 16}, {16, 1, 3}, {5, 7, 1}, {11, 16, 15}};

TEST(EmulatedTiles, MultiplyMatricesOfEveryShape) {
  Rng rng(1);
  for (const Shape& s : shapes) {
    // Rows are further apart than they are long.
    const std::int64_t lda = 2 * s.depth + 6, ldb = 2 * s.columns + 4, ldc = s.columns + 3;
    std::vector<Bfloat16> a(static_cast<std::size_t>(s.rows * lda)),
        b(static_cast<std::size_t>(s.depth * ldb));
    for (auto* values : {&a, &b})
      for (Bfloat16& value : *values) value = to_bf16(2 * rng.uniform() - 1);
    const std::vector<float> before(static_cast<std::size_t>(s.rows * ldc), 0.5f);
    std::vector<float> c = before;
    TileConfig config;
    config.set(0, s.rows, 4 * s.columns);
    config.set(4, s.rows, 4 * s.depth);
    config.set(6, s.depth, 4 * s.columns);
    const TileSession<Tiles> session(config);
    Tiles::load<0>(c.data(), 4 * ldc);
    Tiles::load<4>(a.data(), 2 * lda);
    Tiles::load<6>(b.data(), 2 * ldb);
    Tiles::add_bfloat16<0, 4, 6>();
    Tiles::store<0>(c.data(), 4 * ldc);
    for (std::int64_t m = 0; m < s.rows; ++m)
      for (std::int64_t n = 0; n < ldc; ++n) {
        const auto at = static_cast<std::size_t>(m * ldc + n);
        if (n >= s.columns) {
          ASSERT_EQ(c[at], before[at]);
          continue;
        }
        double sum = 0.5;
        for (std::int64_t k = 0; k < 2 * s.depth; ++k)
          sum += double{from_bf16(a[static_cast<std::size_t>(m * lda + k)])} *
                 from_bf16(b[static_cast<std::size_t>(k / 2 * ldb + 2 * n + k % 2)]);
        ASSERT_NEAR(c[at], sum, 4e-6);
      }
  }
}

TEST(EmulatedTiles, MultiplySignedBytesByUnsignedBytes) {
  const std::int8_t a[4] = {-128, 127, -1, 2};
  const std::uint8_t b[4] = {255, 255, 128, 0};
  std::int32_t c = 1000;
  TileConfig config;
  for (int tile = 0; tile < 3; ++tile) config.set(tile, 1, 4);
  const TileSession<Tiles> session(config);
  Tiles::load<0>(&c, 4);
  Tiles::load<1>(a, 4);
  Tiles::load<2>(b, 4);
  Tiles::add_int8<0, 1, 2>();
  Tiles::store<0>(&c, 4);
  EXPECT_EQ(c, 1000 - 128 * 255 + 127 * 255 - 128);
  Tiles::zero<0>();
  Tiles::add_int8<0, 1, 2>();
  Tiles::store<0>(&c, 4);
  EXPECT_EQ(c, -128 * 255 + 127 * 255 - 128);
}

TEST(EmulatedTiles, RefuseWhatAProcessorRefuses) {
  float memory[16 * 16] = {};
  EXPECT_THROW(Tiles::zero<0>(), Error) << "not configured";
  EXPECT_THROW(Tiles::release(), Error);
  const auto refuses = [](int tile, int rows, int bytes) {
    TileConfig config;
    config.set(tile, rows, bytes);
    EXPECT_THROW(Tiles::configure(config), Error) << tile << ' ' << rows << ' ' << bytes;
  };
  refuses(0, 17, 64);
  refuses(0, 16, 65);
  refuses(0, 0, 64);
  refuses(0, 16, 0);
  refuses(8, 16, 64);
  TileConfig config = product_tiles(16, 16);
  config.palette = 2;
  EXPECT_THROW(Tiles::configure(config), Error);
  config.palette = 1;
  config.set(5, 16, 60);  // A of 30 elements
  config.set(3, 15, 64);  // C of 15 rows
  config.set(2, 0, 0);
  const TileSession<Tiles> session(config);
  EXPECT_THROW((Tiles::load<2>(memory, 64)), Error) << "a tile without a shape";
  EXPECT_THROW((Tiles::add_bfloat16<0, 5, 6>()), Error) << "the rows of B are not those of A's";
  EXPECT_THROW((Tiles::add_int8<3, 4, 6>()), Error) << "C has fewer rows";
  EXPECT_THROW((Tiles::add_bfloat16<0, 6, 6>()), Error) << "a tile twice";
  Tiles::add_bfloat16<0, 4, 6>();
}

// Tiles of C after one product in bfloat16 and one in int8 of the same bytes.
template <class AnyTiles>
std::vector<std::uint32_t> products_of(const std::vector<std::uint8_t>& a,
                                       const std::vector<std::uint8_t>& b) {
  std::vector<std::uint32_t> out(2 * 16 * 16, 1);
  const TileSession<AnyTiles> session(product_tiles(13, 15));
  AnyTiles::template load<4>(a.data(), 64);
  AnyTiles::template load<6>(b.data(), 64);
  AnyTiles::template add_bfloat16<0, 4, 6>();
  AnyTiles::template add_bfloat16<0, 4, 6>();
  AnyTiles::template load<1>(out.data(), 64);
  AnyTiles::template add_int8<1, 4, 6>();
  AnyTiles::template store<0>(out.data(), 64);
  AnyTiles::template store<1>(out.data() + 16 * 16, 64);
  return out;
}

TEST(AmxTiles, AreTheEmulatedOnes) {
#if defined(__x86_64__)
  if (!amx_support().bfloat16 || !amx_support().int8) GTEST_SKIP() << "needs a processor with AMX";
  Rng rng(1);
  for (int round = 0; round < 1000; ++round) {
    std::vector<std::uint8_t> a(16 * 64), b(16 * 64);
    for (auto* bytes : {&a, &b})
      for (std::size_t i = 0; i < bytes->size(); i += 2) {
        // Floats of all sizes, few of which are denormal; without NaN, whose bits are not defined.
        const auto sign = static_cast<std::uint32_t>(rng.below(2)) << 15,
                   exponent = static_cast<std::uint32_t>(rng.below(round % 2 ? 20 : 130)) << 7,
                   fraction = static_cast<std::uint32_t>(rng.below(128));
        const auto value = static_cast<Bfloat16>(sign | exponent | fraction);
        std::memcpy(bytes->data() + i, &value, sizeof value);
      }
    ASSERT_EQ(products_of<AmxTiles>(a, b), products_of<Tiles>(a, b)) << round;
  }
#else
  GTEST_SKIP() << "needs a processor with AMX";
#endif
}

TEST(EmulatedTiles, ConfiguringClearsThem) {
  float memory[16 * 16];
  std::fill(std::begin(memory), std::end(memory), 1.0f);
  {
    const TileSession<Tiles> session(product_tiles(16, 16));
    Tiles::load<0>(memory, 64);
  }
  const TileSession<Tiles> session(product_tiles(16, 16));
  Tiles::store<0>(memory, 64);
  for (const float value : memory) ASSERT_EQ(value, 0.0f);
}

TEST(RowTiles, CoverAllRowsEvenly) {
  for (std::int64_t rows = 1; rows < 600; ++rows) {
    const RowTiles tiles(rows);
    ASSERT_EQ(tiles.count, (rows + 15) / 16);
    ASSERT_LE(tiles.height, 16);
    ASSERT_GE(tiles.count * tiles.height, rows);
    ASSERT_LT((tiles.count - 1) * tiles.height, rows) << "the last tile is empty";
  }
}

}  // namespace
}  // namespace nmt::kernels
