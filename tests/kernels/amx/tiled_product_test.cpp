// Parts of products by the code for AMX over emulated tiles, of one or three numbers in bfloat16
// for an input, bit for bit against the order of sums that its instruction has. Matrices have no
// space to spare. gemm_rounded_test.cpp has whole products.

#include "core/threads/thread_pool.h"
#include "kernels/products/bf16/bf16_products.h"
#include "kernels/products/product.h"
#include "tests/kernels/amx/emulated_products.h"
#include "tests/kernels/amx/emulated_tiles.h"
#include "tests/kernels/reference_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace nmt::kernels {
namespace {

const Bf16Products* emulated(int parts) {
  return parts == 1 ? emulated_amx_products() : emulated_amx_split_products();
}

// The numbers in bfloat16 whose sum stands for each value.
std::vector<Floats> parts_of(const Floats& values, int parts) {
  std::vector<Floats> all;
  Floats rest = values;
  for (int part = 0; part < parts; ++part) {
    Floats here;
    for (float& value : rest) {
      here.push_back(static_cast<float>(rounded(value)));
      value -= here.back();
    }
    all.push_back(std::move(here));
  }
  return all;
}

struct Matrices {
  int parts = 1;
  bool ta = false, tb = false, packed = false, accumulate = false;
  std::int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  Floats a, b, before, panels;

  Matrices(int parts_, bool ta_, bool tb_, bool packed_, bool accumulate_, std::int64_t m_,
           std::int64_t n_, std::int64_t k_, std::int64_t gap = 0)
      : parts(parts_),
        ta(ta_),
        tb(tb_),
        packed(packed_),
        accumulate(accumulate_),
        m(m_),
        n(n_),
        k(k_) {
    lda = (ta ? m : k) + gap;
    ldb = (tb ? k : n) + gap;
    ldc = n + gap;
    a = random_floats(((ta ? k : m) - 1) * lda + (ta ? m : k), 1);
    b = random_floats(((tb ? n : k) - 1) * ldb + (tb ? k : n), 2);
    before = random_floats((m - 1) * ldc + n, 3);
    if (!packed) return;
    // Panels of 32 columns, also where those of the loaded kernels have fewer.
    const std::int64_t height = std::max(k, emulated(parts)->column_elements(k));
    panels = Floats(static_cast<std::size_t>((n + 31) / 32 * 32 * height), NAN);
    emulated(parts)->pack(tb, k, 0, n, b.data(), ldb, panels.data());
  }
  Product product(Floats& c) const {
    Product p;
    p.m = m, p.n = n, p.k = k;
    p.a = a.data(), p.lda = lda, p.transpose_a = ta;
    if (packed)
      p.packed = panels.data();
    else
      p.b = b.data(), p.ldb = ldb, p.transpose_b = tb;
    p.accumulate = accumulate;
    p.c = c.data(), p.ldc = ldc;
    p.rounded = emulated(parts);
    return p;
  }
  Floats computed() const {
    Floats c = before;
    emulated(parts)->part(product(c), 0, m, 0, n);
    return c;
  }
  std::string name() const {
    return std::to_string(parts) + std::string(ta ? " A^T " : " A ") + (tb ? "B^T" : "B") +
           (packed ? " packed" : "") + (accumulate ? " +=" : " =") + " " + std::to_string(m) + "," +
           std::to_string(n) + "," + std::to_string(k);
  }

  std::size_t in_a(std::int64_t i, std::int64_t l) const {
    return ta ? at(l, lda, i) : at(i, lda, l);
  }
  std::size_t in_b(std::int64_t l, std::int64_t j) const {
    return tb ? at(j, ldb, l) : at(l, ldb, j);
  }
  // Every 32 elements of k from the first on: the even ones, the odd ones, both, then C; so for
  // every product of parts that is not left out, in the order of blocks.h.
  float by_definition(const std::vector<Floats>& a16, const std::vector<Floats>& b16,
                      std::int64_t i, std::int64_t j) const {
    static constexpr std::pair<std::size_t, std::size_t> six[] = {{2, 0}, {1, 0}, {1, 1},
                                                                  {0, 1}, {0, 2}, {0, 0}};
    float c = accumulate ? before[at(i, ldc, j)] : 0.0f;
    for (std::int64_t first = 0; first < k; first += 32)
      for (const auto& [x, y] : std::span(six).last(parts == 1 ? 1 : 6)) {
        float sums[2] = {};
        for (std::int64_t l = first; l < std::min(first + 32, k); ++l)
          sums[l % 2] = std::fma(a16[x][in_a(i, l)], b16[y][in_b(l, j)], sums[l % 2]);
        c += sums[0] + sums[1];
      }
    return c;
  }
  // Of the rounded inputs with one part, and of the inputs with three.
  double exact(const Floats& x, const Floats& y, std::int64_t i, std::int64_t j,
               double& size) const {
    double sum = accumulate ? before[at(i, ldc, j)] : 0.0;
    size = std::abs(sum);
    for (std::int64_t l = 0; l < k; ++l) {
      const double term = double{x[in_a(i, l)]} * y[in_b(l, j)];
      sum += term;
      size += std::abs(term);
    }
    return sum;
  }
  void expect_definition(const Floats& c) const {
    const std::vector<Floats> a16 = parts_of(a, parts), b16 = parts_of(b, parts);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < ldc && at(i, ldc, j) < c.size(); ++j) {
        if (j >= n) {
          ASSERT_EQ(c[at(i, ldc, j)], before[at(i, ldc, j)]) << name() << ": past the row's end";
          continue;
        }
        ASSERT_EQ(c[at(i, ldc, j)], by_definition(a16, b16, i, j))
            << name() << " at " << i << ',' << j;
        double size = 0;
        const double sum = exact(parts == 1 ? a16[0] : a, parts == 1 ? b16[0] : b, i, j, size);
        const double terms = static_cast<double>(k + (parts == 1 ? 0 : 6));  // six sums for one
        ASSERT_NEAR(c[at(i, ldc, j)], sum, 6e-8 * (2 + std::sqrt(terms)) * size + 1e-30) << name();
      }
  }
};

class TiledProduct : public testing::Test {
 protected:
  void SetUp() override {
    if (!emulated_amx_products()) GTEST_SKIP() << "needs a processor with AVX-512";
  }
};

template <class Body>
void for_each_form(const Body& body) {
  for (const int parts : {1, 3})
    for (int form = 0; form < 4; ++form) body(parts, (form & 1) != 0, (form & 2) != 0);
}

TEST_F(TiledProduct, HasTheBitsOfItsDefinitionInEveryForm) {
  for (const std::int64_t m : {1, 2, 15, 16, 17, 31, 33, 49})
    for (const std::int64_t n : {1, 16, 17, 31, 32, 33, 65, 96})
      for (const std::int64_t k : {1, 2, 3, 31, 32, 33, 47, 63, 64, 65, 97})
        for_each_form([&](int parts, bool ta, bool tb) {
          if (parts == 3 && m + n + k > 100) return;  // emulated tiles are slow
          for (const bool packed : {false, true}) {
            const Matrices x(parts, ta, tb, packed, (m + n + k + packed) % 2 != 0, m, n, k,
                             (m + k) % 3);
            x.expect_definition(x.computed());
            if (HasFatalFailure()) return;
          }
        });
}

// More than one stretch of k, with and without a remainder, and more than one block of B.
TEST_F(TiledProduct, HasTheBitsOfItsDefinitionWithLongSumsAndWideMatrices) {
  for_each_form([](int parts, bool ta, bool tb) {
    for (const bool packed : {false, true})
      for (const std::int64_t k : {511, 512, 513, 545, 1031})
        for (const bool accumulate : {false, true}) {
          const Matrices x(parts, ta, tb, packed, accumulate, 35, 33, k, 1);
          x.expect_definition(x.computed());
          if (HasFatalFailure()) return;
        }
    const Matrices wide(parts, ta, tb, ta == tb, false, 3, 1500, 512);
    wide.expect_definition(wide.computed());
  });
}

TEST_F(TiledProduct, TheBitsOfARowDependNeitherOnTheOthersNorOnTheSplit) {
  for_each_form([](int parts, bool ta, bool tb) {
    const Matrices x(parts, ta, tb, !ta, true, 83, parts == 1 ? 130 : 66, parts == 1 ? 593 : 215,
                     2);
    const Floats whole = x.computed();
    for (const std::int64_t rows : {1, 2, 5, 16, 21, 32, 40})
      for (const std::int64_t columns : {32, 96, 160}) {
        Floats c = x.before;
        const Product p = x.product(c);
        for (std::int64_t m = 0; m < x.m; m += rows)
          for (std::int64_t n = 0; n < x.n; n += columns)
            p.rounded->part(p, m, std::min(m + rows, x.m), n, std::min(n + columns, x.n));
        ASSERT_EQ(c, whole) << x.name() << " in parts of " << rows << " x " << columns;
      }
    Floats c = x.before;
    const Product p = x.product(c);
    ThreadPool pool(3);
    pool.run(
        [&](int worker) { p.rounded->part(p, x.m * worker / 3, x.m * (worker + 1) / 3, 0, x.n); });
    ASSERT_EQ(c, whole) << x.name() << " by three threads";
  });
}

// Padding must not multiply what does not belong to the product.
TEST_F(TiledProduct, WhatIsNotFiniteStaysInItsRowsAndColumns) {
  for_each_form([](int parts, bool ta, bool tb) {
    for (const bool packed : {false, true}) {
      Matrices x(parts, ta, tb, packed, false, 18, 40, 37);
      x.a[ta ? at(36, x.lda, 4) : at(4, x.lda, 36)] = INFINITY;
      x.b[tb ? at(39, x.ldb, 36) : at(36, x.ldb, 39)] = NAN;
      if (packed) emulated(parts)->pack(tb, x.k, 0, x.n, x.b.data(), x.ldb, x.panels.data());
      const Floats c = x.computed();
      for (std::int64_t i = 0; i < x.m; ++i)
        for (std::int64_t j = 0; j < x.n; ++j)
          ASSERT_EQ(std::isfinite(c[at(i, x.ldc, j)]), i != 4 && j != 39) << x.name();
    }
  });
}

TEST_F(TiledProduct, ConfiguresTilesOncePerPartAndReleasesThem) {
  for (const int parts : {1, 3}) {
    const auto before = EmulatedTiles::counts();
    const Matrices x(parts, false, false, true, false, 96, 64, 512);
    (void)x.computed();
    const auto after = EmulatedTiles::counts();
    EXPECT_EQ(after.configured - before.configured, 1);
    EXPECT_EQ(after.released - before.released, 1);
    const int products = parts == 1 ? 1 : 6;
    EXPECT_EQ(after.products - before.products, products * 96 / 16 * 64 / 16 * 512 / 32);
  }
}

}  // namespace
}  // namespace nmt::kernels
