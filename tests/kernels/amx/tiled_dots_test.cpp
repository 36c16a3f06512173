// The int8 product by the code for AMX over emulated tiles: the bits of the product of this
// processor, in all shapes.

#include "kernels/products/amx/tiled_dots.h"

#include "core/threads/thread_pool.h"
#include "kernels/products/int8/gemm_int8.h"
#include "tests/kernels/amx/emulated_tiles.h"
#include "tests/kernels/reference_values.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::kernels {
namespace {

struct Int8Matrices {
  std::int64_t m, n, k, lda, ldc;
  Floats a, bias, before;
  test::Guarded<std::byte> packed;

  Int8Matrices(std::int64_t m_, std::int64_t n_, std::int64_t k_, std::int64_t gap)
      : m(m_),
        n(n_),
        k(k_),
        lda(k + gap),
        ldc(n + gap),
        a(random_floats((m - 1) * lda + k, 4)),
        bias(random_floats(n, 5)),
        before(random_floats((m - 1) * ldc + n, 6)),
        packed(static_cast<std::size_t>(packed_int8_size(k, n))) {
    ThreadPool pool(1);
    const Floats b = random_floats(n * k, 7);
    pack_int8(Cpu{&pool}, false, k, n, b.data(), n, packed.data());
  }
  Int8Product product(bool accumulate, bool biased, Floats& c) const {
    return {n,
            k,
            a.data(),
            lda,
            packed.data(),
            nullptr,
            {accumulate, biased ? bias.data() : nullptr},
            c.data(),
            ldc};
  }
  // By this processor's tiles.
  Floats expected(bool accumulate, bool biased) const {
    ThreadPool pool(1);
    Floats c = before;
    gemm_int8(Cpu{&pool}, m, n, k, a.data(), lda, packed.data(), accumulate, c.data(), ldc,
              biased ? bias.data() : nullptr);
    return c;
  }
};

void part(const Int8Product& p, std::int64_t m_begin, std::int64_t m_end, std::int64_t n_begin,
          std::int64_t n_end) {
  int8_part<TiledDots<EmulatedTiles>>(p, m_begin, m_end, n_begin, n_end);
}

TEST(TiledDots, HaveTheBitsOfTheOtherTilesInEveryShape) {
  for (const std::int64_t m : {1, 3, 4, 15, 16, 17, 32, 33, 48, 81})
    for (const std::int64_t n : {1, 15, 16, 17, 32, 49, 64, 65, 100})
      for (const std::int64_t k :
           {1, 3, 4, 5, 60, 61, 63, 64, 65, 66, 68, 100, 127, 128, 130, 192}) {
        const bool accumulate = (m + n + k) % 3 == 0, biased = (m + n + k) % 3 == 1;
        const Int8Matrices x(m, n, k, (m + k) % 2);
        Floats c = x.before;
        part(x.product(accumulate, biased, c), 0, m, 0, n);
        ASSERT_EQ(c, x.expected(accumulate, biased)) << m << ',' << n << ',' << k;
      }
}

// Several passes over the weights, the last ones with few rows; rows that fill the buffer.
TEST(TiledDots, HaveTheSameBitsWithManyRowsAndLongSums) {
  for (const auto& [m, k] :
       {std::pair<std::int64_t, std::int64_t>{530, 70}, {75, 4098}, {5, 65536}}) {
    const Int8Matrices x(m, 37, k, 0);
    Floats c = x.before;
    part(x.product(false, false, c), 0, m, 0, 37);
    ASSERT_EQ(c, x.expected(false, false)) << m << ',' << k;
  }
}

TEST(TiledDots, PartsGiveTheBitsOfTheWhole) {
  const Int8Matrices x(70, 150, 201, 1);
  const Floats whole = x.expected(false, true);
  for (const std::int64_t rows : {1, 4, 19, 32, 70})
    for (const std::int64_t columns : {16, 64, 112}) {
      Floats c = x.before;
      const Int8Product p = x.product(false, true, c);
      for (std::int64_t m = 0; m < x.m; m += rows)
        for (std::int64_t n = 0; n < x.n; n += columns)
          part(p, m, std::min(m + rows, x.m), n, std::min(n + columns, x.n));
      ASSERT_EQ(c, whole) << rows << " x " << columns;
    }
}

TEST(TiledDots, ConfigureTilesOncePerPassAndReleaseThem) {
  const Int8Matrices x(64, 64, 256, 0);
  Floats c = x.before;
  const auto before = EmulatedTiles::counts();
  part(x.product(false, false, c), 0, 64, 0, 64);
  const auto after = EmulatedTiles::counts();
  EXPECT_EQ(after.configured - before.configured, 1);
  EXPECT_EQ(after.released - before.released, 1);
  EXPECT_EQ(after.products - before.products, 64 / 16 * 64 / 16 * 256 / 64);
}

}  // namespace
}  // namespace nmt::kernels
