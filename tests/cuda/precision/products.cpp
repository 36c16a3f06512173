// Products in TF32 and bfloat16 against sums in double of inputs rounded one by one.

#include "config/precision.h"
#include "kernels/products/gemm.h"
#include "kernels/products/gemm_batched.h"
#include "kernels/products/product_input.h"
#include "tests/cuda/precision/rounded_products.h"
#include "tests/cuda/table.h"

#include <cmath>

#include <gtest/gtest.h>

namespace nmt::test {
namespace {

using namespace nmt::kernels;

constexpr Sizes products[] = {{1, 1, 1}, {3, 31, 33}, {33, 3, 257}, {31, 257, 3}, {64, 40, 128}};

/// A second device with this precision: the same product on it and in double.
void check_products(Parity& p, Precision precision, int bits, double tolerance) {
  CudaDevice device(p.device_index(), precision);
  for (const Sizes& s : products)
    for (const int transposes : {0, 1, 2, 3})
      for (const std::int64_t gap : {0, 3}) {  // with and without gaps between rows
        const bool ta = transposes & 1, tb = transposes & 2;
        p.sizes("{}: m {} n {} k {} transpose {} {} gap {}", name_of(precision), s.m, s.n, s.k, ta,
                tb, gap);
        const std::int64_t lda = (ta ? s.m : s.k) + gap, ldb = (tb ? s.k : s.n) + gap,
                           ldc = s.n + gap;
        const auto a = p.floats((ta ? s.k : s.m) * lda), b = p.floats((tb ? s.n : s.k) * ldb),
                   c = p.floats(s.m * ldc), y = p.floats(s.m * s.n), sum = p.floats(s.m * s.n);
        const auto packed = p.scratch(0, packed_size(s.k, s.n));
        // Inputs that are rounded before the product.
        const bool once = gap == 0 && precision == Precision::bfloat16;
        const auto of_once = p.floats(once ? s.m * s.n : 0),
                   of_one = p.floats(once ? s.m * s.n : 0);
        const std::int64_t a_rows = ta ? s.k : s.m, b_rows = tb ? s.n : s.k;
        const auto round_a = p.scratch(0, a_rows * rounded_stride(lda)),
                   round_b = p.scratch(0, b_rows * rounded_stride(ldb));
        p.run(
            [&](const Cpu& on) {
              const View x{a(on), lda, ta}, w{b(on), ldb, tb};
              if (once) {
                multiply_rounded(s, bits, x, w, 0.0f, of_once(on), s.n);
                multiply_rounded(s, bits, x, w, 0.0f, of_one(on), s.n);
              }
              multiply_rounded(s, bits, x, w, 1.0f, c(on), ldc);
              if (ta) return;
              multiply_rounded(s, bits, x, w, 0.0f, y(on), s.n);
              multiply_rounded(s, bits, x, w, 1.0f, sum(on), s.n);
            },
            [&](const Cuda& table) {
              const Cuda on = device.handle();
              if (once) {
                auto* const left = reinterpret_cast<Bfloat16*>(round_a(table));
                auto* const right = reinterpret_cast<Bfloat16*>(round_b(table));
                round_matrix(on, a_rows, lda, a(table), left);
                round_matrix(on, b_rows, ldb, b(table), right);
                // The float32 matrices are not read.
                gemm(on, ta, tb, s.m, s.n, s.k, {nullptr, left}, lda, {nullptr, right}, ldb, 0.0f,
                     of_once(table), s.n);
                gemm(on, ta, tb, s.m, s.n, s.k, {nullptr, left}, lda, b(table), ldb, 0.0f,
                     of_one(table), s.n);
              }
              gemm(on, ta, tb, s.m, s.n, s.k, a(table), lda, b(table), ldb, 1.0f, c(table), ldc);
              if (!ta) {
                pack(on, tb, s.k, s.n, b(table), ldb, packed(table));
                gemm_packed(on, s.m, s.n, s.k, a(table), lda, packed(table), false, y(table), s.n);
                gemm_packed(on, s.m, s.n, s.k, a(table), lda, packed(table), true, sum(table), s.n);
              }
              device.synchronize();
            },
            tolerance);
      }
}

/// Block-diagonal products: the same batch in both forms, and rows of the packed matrix.
void check_blocks(Parity& p, Precision precision, int bits, double tolerance) {
  CudaDevice device(p.device_index(), precision);
  for (const BlockDiagonal w : {BlockDiagonal{4, 1, 8, 8, 8}, BlockDiagonal{3, 2, 5, 7, 14}})
    for (const std::int64_t rows : {1, 3, 31}) {
      p.sizes("{}: rows {} groups {} planes {} k {} n {}", name_of(precision), rows, w.groups,
              w.planes, w.k, w.n);
      const std::int64_t in = w.groups * w.k, out = w.groups * w.planes * w.n;
      const auto x = p.floats(rows * in), weight = p.floats(in * w.ld), y = p.floats(rows * out),
                 packed_y = p.floats(rows * out), columns = p.floats(5 * w.k);
      const auto dy = p.floats(rows * out), dx = p.floats(rows * in),
                 packed_dx = p.floats(rows * in), dw = p.floats(in * w.ld);
      const auto ids = p.integers(5, static_cast<std::int32_t>(w.n));
      const std::int64_t size = packed_batched_size(w.product(), w.k, w.n) + packed_size(w.k, w.n);
      const auto packed = p.scratch(size, size);
      p.run(
          [&](const Cpu& on) {
            const GemmBatch batch = w.product();
            for (float* to : {y(on), packed_y(on)})
              for (std::int64_t g = 0; g < w.groups; ++g)
                for (std::int64_t plane = 0; plane < w.planes; ++plane)
                  multiply_rounded({rows, w.n, w.k}, bits,
                                   {x(on) + g * batch.a_group + plane * batch.a_plane, in},
                                   {weight(on) + g * batch.b_group + plane * batch.b_plane, w.ld},
                                   0.0f, to + g * batch.c_group + plane * batch.c_plane, out);
            for (std::int64_t g = 0; g < w.groups; ++g)
              for (std::int64_t plane = 0; plane < w.planes; ++plane) {
                const View from{dy(on) + g * w.n + plane * w.groups * w.n, out};
                for (float* to : {dx(on), packed_dx(on)})
                  multiply_rounded({rows, w.k, w.n}, bits, from,
                                   {weight(on) + g * w.k * w.ld + plane * w.n, w.ld, true},
                                   plane > 0 ? 1.0f : 0.0f, to + g * w.k, in);
                multiply_rounded({w.k, w.n, rows}, bits, {x(on) + g * w.k, in, true}, from, 1.0f,
                                 dw(on) + g * w.k * w.ld + plane * w.n, w.ld);
              }
            for (std::int64_t r = 0; r < 5; ++r)
              for (std::int64_t i = 0; i < w.k; ++i) {
                const float value = weight(on)[i * w.ld + ids(on)[r]];
                columns(on)[r * w.k + i] = precision == Precision::bfloat16
                                               ? static_cast<float>(rounded(value, bits))
                                               : value;
              }
          },
          [&](const Cuda& table) {
            const Cuda on = device.handle();
            gemm_batched(on, w.product(), false, false, rows, w.n, w.k, x(table), in, weight(table),
                         w.ld, 0.0f, y(table), out);
            pack_batched(on, w.product(), false, w.k, w.n, weight(table), w.ld, packed(table));
            gemm_packed_batched(on, w.product(), rows, w.n, w.k, x(table), in, packed(table), false,
                                packed_y(table), out);
            const GemmBatch back = w.input_gradient();
            gemm_batched(on, back, false, true, rows, w.k, w.n, dy(table), out, weight(table), w.ld,
                         0.0f, dx(table), in);
            pack_batched(on, back, true, w.n, w.k, weight(table), w.ld, packed(table));
            gemm_packed_batched(on, back, rows, w.k, w.n, dy(table), out, packed(table), false,
                                packed_dx(table), in);
            gemm_batched(on, w.weight_gradient(), true, false, w.k, w.n, rows, x(table), in,
                         dy(table), out, 1.0f, dw(table), w.ld);
            pack(on, false, w.k, w.n, weight(table), w.ld, packed(table));
            gather_packed(on, 5, w.k, ids(table), packed(table), columns(table));
            device.synchronize();
          },
          tolerance);
    }
}

/// Several packed matrices as one product, and rows of one of them, also rounded.
void check_packed_of_each(Parity& p, Precision precision) {
  CudaDevice device(p.device_index(), precision);
  const bool rounds = precision == Precision::bfloat16;
  const int bits = rounds ? 8 : 24;
  for (const Sizes& s : {Sizes{1, 8, 8}, Sizes{3, 40, 16}, Sizes{33, 24, 64}}) {
    constexpr std::int64_t count = 3;
    p.sizes("{}: m {} n {} k {}", name_of(precision), s.m, s.n, s.k);
    const std::int64_t stride = packed_size(s.k, s.n) + 8;
    const auto x = p.floats(s.m * s.k), weights = p.floats(count * s.k * s.n),
               y = p.floats(count * s.m * s.n), of_floats = p.floats(count * s.m * s.n),
               rows = p.floats(5 * s.k), packed = p.scratch(0, count * stride),
               copy = p.scratch(0, s.m * s.k);
    const auto ids = p.integers(5, static_cast<std::int32_t>(s.n));
    const auto rows_rounded =
        p.values(std::vector<Bfloat16>(static_cast<std::size_t>(rounds ? 5 * s.k : 0)), false);
    p.run(
        [&](const Cpu& on) {
          for (std::int64_t i = 0; i < count; ++i)
            for (float* const to : {y(on), of_floats(on)})
              multiply_rounded(s, bits, {x(on), s.k}, {weights(on) + i * s.k * s.n, s.n}, 0.0f,
                               to + i * s.m * s.n, s.n);
          for (std::int64_t i = 0; i < 5 * s.k; ++i) {
            const float value = weights(on)[i % s.k * s.n + ids(on)[i / s.k]];
            rows(on)[i] = static_cast<float>(rounded(value, bits));
            if (rounds) rows_rounded(on)[i] = to_bf16(value);
          }
        },
        [&](const Cuda& table) {
          const Cuda on = device.handle();
          for (std::int64_t i = 0; i < count; ++i)
            pack(on, false, s.k, s.n, weights(table) + i * s.k * s.n, s.n,
                 packed(table) + i * stride);
          ProductInput left = x(table);
          if (rounds) {
            auto* const to = reinterpret_cast<Bfloat16*>(copy(table));
            round_matrix(on, s.m, s.k, x(table), to);
            left = {nullptr, to};
          }
          gemm_packed_of_each(on, count, s.m, s.n, s.k, left, packed(table), stride, y(table));
          gemm_packed_of_each(on, count, s.m, s.n, s.k, x(table), packed(table), stride,
                              of_floats(table));
          if (rounds)
            gather_packed_rounded(on, 5, s.k, ids(table), packed(table), rows(table),
                                  rows_rounded(table));
          else
            gather_packed(on, 5, s.k, ids(table), packed(table), rows(table));
          device.synchronize();
        },
        1e-5);
  }
}

/// bfloat16 has float32's range, so no loss scaling is needed. Half precision would lose all of
/// these numbers but 1.
void check_range(Parity& p) {
  CudaDevice device(p.device_index(), Precision::bfloat16);
  for (const float value : {3e38f, -3e38f, 65536.0f, 1.0f, 1e-30f, -1e-30f, 1.2e-38f})
    for (const float beta : {0.0f, 1.0f}) {  // 1: a gradient is accumulated
      p.sizes("{} times 1 + {}", value, beta);
      const auto x = p.values(std::vector<float>{value}, true),
                 one = p.values(std::vector<float>{1.0f}, true),
                 y = p.values(std::vector<float>{0.0f}, true);
      p.run([&](const Cpu& on) { *y(on) = value; },
            [&](const Cuda& table) {
              gemm(device.handle(), false, false, 1, 1, 1, x(table), 1, one(table), 1, beta,
                   y(table), 1);
              device.synchronize();
            },
            1.0 / 512);  // relative to twice the value
    }
}

/// The smallest fraction that each precision keeps, and the next one, which it loses.
void check_fraction(Parity& p) {
  constexpr std::int64_t n = 64;
  std::vector<float> identity(n * n);
  for (std::size_t i = 0; i < n; ++i) identity[i * n + i] = 1.0f;
  for (const auto& [precision, bits] :
       {std::pair{Precision::float32, 23}, std::pair{Precision::tf32, 10},
        std::pair{Precision::bfloat16, 7}}) {
    CudaDevice device(p.device_index(), precision);
    EXPECT_EQ(reads_rounded(device.handle()), precision == Precision::bfloat16);
    for (const bool kept : {true, false}) {
      p.sizes("{}: a fraction that is {}", name_of(precision), kept ? "kept" : "lost");
      const float value = 1.0f + std::ldexp(1.0f, kept ? -bits : -bits - 2);
      const auto x = p.values(std::vector<float>(n * n, value), true),
                 unit = p.values(identity, true), y = p.floats(n * n);
      p.run([&](const Cpu& on) { std::fill_n(y(on), n * n, kept ? value : 1.0f); },
            [&](const Cuda& table) {
              gemm(device.handle(), false, false, n, n, n, x(table), n, unit(table), n, 0.0f,
                   y(table), n);
              device.synchronize();
            },
            0.0);
    }
  }
}

}  // namespace

std::vector<ParityRow> precision_parity() {
  return {
      {"bfloat16_products",
       [](Parity& p) {
         check_products(p, Precision::bfloat16, 8, 1e-5);
         check_blocks(p, Precision::bfloat16, 8, 1e-5);
       }},
      // A GPU may truncate the inputs where the reference rounds them.
      {"tf32_products",
       [](Parity& p) {
         check_products(p, Precision::tf32, 11, 2e-3);
         check_blocks(p, Precision::tf32, 11, 2e-3);
       }},
      {"bfloat16_range", check_range},
      {"precision_fraction", check_fraction},
      {"gemm_packed_of_each", [](Parity& p) { check_packed_of_each(p, Precision::float32); }},
      {"bfloat16_packed_of_each", [](Parity& p) { check_packed_of_each(p, Precision::bfloat16); }},
  };
}

}  // namespace nmt::test
