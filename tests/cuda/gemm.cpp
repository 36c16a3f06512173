#include "kernels/products/gemm.h"

#include "kernels/products/gemm_batched.h"
#include "tests/cuda/table.h"

namespace nmt::test {
namespace {

using namespace nmt::kernels;

struct Sizes {
  std::int64_t m, n, k;
};
constexpr Sizes products[] = {{1, 1, 1}, {3, 31, 33}, {33, 3, 257}, {31, 257, 3}, {64, 40, 128}};
constexpr double tolerance = 1e-5;

void packed_products(Parity& p) {
  for (const auto [m, n, k] : products)
    for (const bool transpose : {false, true}) {
      p.sizes("m {} n {} k {} transpose {}", m, n, k, transpose);
      const std::int64_t ldb = (transpose ? k : n) + 2;
      const auto a = p.floats(m * (k + 1)), b = p.floats((transpose ? n : k) * ldb),
                 c = p.floats(m * (n + 3)), sum = p.floats(m * n);
      const auto packed = p.scratch(packed_size(k, n), packed_size(k, n));
      const auto columns = p.integers(7, static_cast<std::int32_t>(n));
      const auto rows = p.floats(7 * k);
      p.run(
          [&](const auto& on) {
            pack(on, transpose, k, n, b(on), ldb, packed(on));
            gemm_packed(on, m, n, k, a(on), k + 1, packed(on), false, c(on), n + 3);
            gemm_packed(on, m, n, k, a(on), k + 1, packed(on), true, sum(on), n);
            gather_packed(on, 7, k, columns(on), packed(on), rows(on));
          },
          tolerance);
    }
}

void batched_products(Parity& p, bool packed) {
  for (const BlockDiagonal w : {BlockDiagonal{1, 1, 3, 5, 5}, BlockDiagonal{4, 1, 8, 8, 8},
                                BlockDiagonal{3, 2, 5, 7, 14}, BlockDiagonal{2, 3, 33, 31, 100}})
    for (const std::int64_t rows : {1, 3, 31}) {
      p.sizes("rows {} groups {} planes {} k {} n {}", rows, w.groups, w.planes, w.k, w.n);
      const std::int64_t in = w.groups * w.k, out = w.groups * w.planes * w.n;
      const auto x = p.floats(rows * in), weight = p.floats(in * w.ld), y = p.floats(rows * out),
                 sum = p.floats(rows * out);
      const auto dx = p.floats(rows * in), dweight = p.floats(in * w.ld);
      const std::int64_t size = packed_batched_size(w.product(), w.k, w.n),
                         back = packed_batched_size(w.input_gradient(), w.n, w.k);
      const auto forward = p.scratch(size, size), backward = p.scratch(back, back);
      p.run(
          [&](const auto& on) {
            if (packed) {
              pack_batched(on, w.product(), false, w.k, w.n, weight(on), w.ld, forward(on));
              gemm_packed_batched(on, w.product(), rows, w.n, w.k, x(on), in, forward(on), false,
                                  y(on), out);
              gemm_packed_batched(on, w.product(), rows, w.n, w.k, x(on), in, forward(on), true,
                                  sum(on), out);
              pack_batched(on, w.input_gradient(), true, w.n, w.k, weight(on), w.ld, backward(on));
              gemm_packed_batched(on, w.input_gradient(), rows, w.k, w.n, y(on), out, backward(on),
                                  true, dx(on), in);
            } else {
              gemm_batched(on, w.product(), false, false, rows, w.n, w.k, x(on), in, weight(on),
                           w.ld, 0.0f, y(on), out);
              gemm_batched(on, w.product(), false, false, rows, w.n, w.k, x(on), in, weight(on),
                           w.ld, 1.0f, sum(on), out);
              gemm_batched(on, w.input_gradient(), false, true, rows, w.k, w.n, y(on), out,
                           weight(on), w.ld, 0.0f, dx(on), in);
              gemm_batched(on, w.weight_gradient(), true, false, w.k, w.n, rows, x(on), in, y(on),
                           out, 1.0f, dweight(on), w.ld);
            }
          },
          tolerance);
    }
}

}  // namespace

std::vector<ParityRow> gemm_parity() {
  return {
      {"gemm",
       [](Parity& p) {
         for (const auto [m, n, k] : products)
           for (const int transposes : {0, 1, 2, 3})
             for (const float beta : {0.0f, 1.0f}) {
               const bool ta = transposes & 1, tb = transposes & 2;
               p.sizes("m {} n {} k {} transpose {} {} beta {}", m, n, k, ta, tb, beta);
               const std::int64_t lda = (ta ? m : k) + 1, ldb = (tb ? k : n) + 2, ldc = n + 3;
               const auto a = p.floats((ta ? k : m) * lda), b = p.floats((tb ? n : k) * ldb),
                          c = p.floats(m * ldc);
               p.run(
                   [&](const auto& on) {
                     gemm(on, ta, tb, m, n, k, a(on), lda, b(on), ldb, beta, c(on), ldc);
                   },
                   tolerance);
             }
       }},
      {"gemm_bias",
       [](Parity& p) {
         for (const auto [m, n, k] :
              products) {  // of n 1, 31, 3 and 257 the emulator's library has none with a bias
           p.sizes("m {} n {} k {}", m, n, k);
           const auto x = p.floats(m * k), w = p.floats(k * n), bias = p.floats(n),
                      y = p.floats(m * n), packed_y = p.floats(m * n);
           const auto packed = p.scratch(packed_size(k, n), packed_size(k, n));
           p.run(
               [&](const auto& on) {
                 gemm_bias(on, m, n, k, x(on), w(on), bias(on), y(on));
                 pack(on, false, k, n, w(on), n, packed(on));
                 gemm_packed_bias(on, m, n, k, x(on), packed(on), bias(on), packed_y(on));
               },
               tolerance);
         }
       }},
      {"gemm_packed", packed_products},
      {"gemm_batched", [](Parity& p) { batched_products(p, false); }},
      {"gemm_packed_batched", [](Parity& p) { batched_products(p, true); }},
  };
}

}  // namespace nmt::test
