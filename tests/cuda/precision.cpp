// Products in TF32 and bfloat16 against sums in double of inputs rounded one by one.

#include "config/precision.h"

#include "kernels/layer_norm.h"
#include "kernels/products/gemm.h"
#include "kernels/products/gemm_batched.h"
#include "kernels/products/rounded.h"
#include "kernels/softmax_loss.h"
#include "tests/cuda/table.h"

#include <cmath>

#include <gtest/gtest.h>

namespace nmt::test {
namespace {

using namespace nmt::kernels;

/// Rounds to `bits` bits of significand, to nearest, ties to even.
double rounded(float x, int bits) {
  if (x == 0.0f || !std::isfinite(x)) return static_cast<double>(x);
  int exponent = 0;
  const double significand = std::frexp(static_cast<double>(x), &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(significand, bits)), exponent - bits);
}

struct Sizes {
  std::int64_t m, n, k;
};
constexpr Sizes products[] = {{1, 1, 1}, {3, 31, 33}, {33, 3, 257}, {31, 257, 3}, {64, 40, 128}};

/// op(X)[i,j] of a matrix in rows of ld.
struct View {
  const float* data;
  std::int64_t ld;
  bool transpose = false;
  float operator()(std::int64_t i, std::int64_t j) const {
    return transpose ? data[j * ld + i] : data[i * ld + j];
  }
};

void multiply_rounded(const Sizes& s, int bits, const View& a, const View& b, float beta, float* c,
                      std::int64_t ldc) {
  for (std::int64_t i = 0; i < s.m; ++i)
    for (std::int64_t j = 0; j < s.n; ++j) {
      double sum = beta == 0.0f ? 0.0 : static_cast<double>(beta * c[i * ldc + j]);
      for (std::int64_t l = 0; l < s.k; ++l) sum += rounded(a(i, l), bits) * rounded(b(l, j), bits);
      c[i * ldc + j] = static_cast<float>(sum);
    }
}

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
               y = p.floats(count * s.m * s.n), rows = p.floats(5 * s.k),
               packed = p.scratch(0, count * stride), copy = p.scratch(0, s.m * s.k);
    const auto ids = p.integers(5, static_cast<std::int32_t>(s.n));
    const auto rows_rounded =
        p.values(std::vector<Bfloat16>(static_cast<std::size_t>(rounds ? 5 * s.k : 0)), false);
    p.run(
        [&](const Cpu& on) {
          for (std::int64_t i = 0; i < count; ++i)
            multiply_rounded(s, bits, {x(on), s.k}, {weights(on) + i * s.k * s.n, s.n}, 0.0f,
                             y(on) + i * s.m * s.n, s.n);
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

/// The loss in bfloat16 against sums in double: rounded rows and table and, in passes with
/// gradients, rounded logits and rounded gradients of them.
void check_softmax_loss(Parity& p) {
  constexpr int bits = 8;
  CudaDevice device(p.device_index(), Precision::bfloat16);
  struct Case {
    std::int64_t rows, width, vocabulary;
    double smoothing;
    bool gradient;
  };
  for (const auto [rows, width, vocabulary, smoothing, gradient] :  // 200 rows: several chunks
       {Case{3, 31, 33, 0, true}, Case{31, 33, 257, 0.1, true}, Case{31, 33, 257, 0.1, false},
        Case{200, 3, 31, 0, true}, Case{31, 33, 260, 0.1, true}}) {
    p.sizes("rows {} width {} vocabulary {} smoothing {} gradient {}", rows, width, vocabulary,
            smoothing, gradient);
    const auto x = p.floats(rows * width), table = p.floats(vocabulary * width),
               bias = p.floats(vocabulary), dx = p.floats(rows * width),
               dtable = p.floats(vocabulary * width), dbias = p.floats(vocabulary);
    const auto target = p.integers(rows, static_cast<std::int32_t>(vocabulary), no_target);
    const auto scratch =
        p.scratch(0, softmax_loss_scratch(device.handle(), rows, width, vocabulary));
    const auto rounded_table =
                   p.scratch(0, (vocabulary * rounded_stride(width) + 1) / 2),  // two to a float
        rounded_x = p.scratch(0, (rows * rounded_stride(width) + 1) / 2);
    const auto sums = p.doubles({0.5, 0.25});
    const float scale = 0.5f;
    p.run(
        [&](const Cpu& on) {
          const auto n = static_cast<std::size_t>(vocabulary);
          const double share = smoothing / static_cast<double>(vocabulary);
          const double information =
              smoothing > 0 ? (1 - smoothing + share) * std::log(1 - smoothing + share) +
                                  static_cast<double>(vocabulary - 1) * share * std::log(share)
                            : 0;
          if (gradient) std::fill_n(dx(on), rows * width, 0.0f);
          if (gradient && smoothing > 0) std::fill_n(dtable(on), vocabulary * width, 0.0f);
          for (std::int64_t r = 0; r < rows; ++r) {
            if (target(on)[r] == no_target) continue;
            const auto factor = [&](const float* matrix, std::int64_t row, std::int64_t i) {
              return rounded(matrix[row * width + i], bits);
            };
            std::vector<double> logit(n);
            double sum = 0, all = 0;
            for (std::size_t v = 0; v < n; ++v) {
              for (std::int64_t i = 0; i < width; ++i)
                logit[v] +=
                    factor(x(on), r, i) * factor(table(on), static_cast<std::int64_t>(v), i);
              if (gradient) logit[v] = rounded(static_cast<float>(logit[v]), bits);
              logit[v] += static_cast<double>(bias(on)[v]);
              sum += std::exp(logit[v]);
              all += logit[v];
            }
            const auto label = static_cast<std::size_t>(target(on)[r]);
            sums(on)[0] += std::log(sum) - logit[label];
            sums(on)[1] +=
                std::log(sum) - (1 - smoothing) * logit[label] - share * all + information;
            for (std::size_t v = 0; gradient && v < n; ++v) {
              const double wanted = share + (v == label ? 1 - smoothing : 0.0);
              const double exact = 0.5 * (std::exp(logit[v]) / sum - wanted);
              const double d = rounded(static_cast<float>(exact), bits);
              const auto row = static_cast<std::int64_t>(v);
              dbias(on)[v] += static_cast<float>(d);
              for (std::int64_t i = 0; i < width; ++i) {
                dx(on)[r * width + i] += static_cast<float>(d * factor(table(on), row, i));
                dtable(on)[row * width + i] += static_cast<float>(d * factor(x(on), r, i));
              }
            }
          }
        },
        [&](const Cuda& on) {
          SoftmaxLoss loss;
          loss.rows = rows;
          loss.width = width;
          loss.vocabulary = vocabulary;
          loss.x = x(on);
          loss.table = table(on);
          loss.bias = bias(on);
          loss.target = target(on);
          loss.smoothing = static_cast<float>(smoothing);
          loss.scale = scale;
          loss.dx = gradient ? dx(on) : nullptr;
          loss.dtable = gradient ? dtable(on) : nullptr;
          loss.dbias = gradient ? dbias(on) : nullptr;
          if (smoothing > 0) loss.dtable_beta = 0.0f;
          loss.cross_entropy = sums(on);
          loss.smoothed = sums(on) + 1;
          loss.scratch = scratch(on);
          auto* const copy = reinterpret_cast<Bfloat16*>(rounded_table(on));
          round_matrix(device.handle(), vocabulary, width, table(on), copy);
          loss.rounded_table = copy;
          auto* const rows_copy = reinterpret_cast<Bfloat16*>(rounded_x(on));
          round_matrix(device.handle(), rows, width, x(on), rows_copy);
          loss.rounded_x = rows_copy;
          softmax_loss(device.handle(), loss);
          device.synchronize();
        },
        4e-3);  // a gradient between two bfloat16 numbers may be rounded to either
  }
}

/// The gradient of layer normalization in bfloat16: that of float32 rounded, and the same sums.
void check_layer_norm(Parity& p) {
  CudaDevice device(p.device_index(), Precision::bfloat16);
  for (const std::int64_t rows : {1, 3, 33})
    for (const std::int64_t planes : {1, 3})
      for (const std::int64_t width : {3, 31, 64}) {
        p.sizes("rows {} planes {} width {}", rows, planes, width);
        const std::int64_t wide = planes * width, n = rows * wide, stride = rounded_stride(wide);
        const auto dy = p.floats(n), x = p.floats(n),
                   statistics = p.floats(2 * rows * planes, 2.0f), gain = p.floats(wide, 1.0f),
                   dgain = p.floats(wide), dbias = p.floats(wide), dx = p.floats(n),
                   factors = p.floats(wide * wide);
        const auto own = p.scratch(n, rows * stride);
        p.run(
            [&](const Cpu& on) {
              layer_norm_backward(on, rows, planes, width, dy(on), x(on), statistics(on), gain(on),
                                  own(on), dgain(on), dbias(on));
              const View a{own(on), wide}, b{factors(on), wide};
              multiply_rounded({rows, wide, wide}, 8, a, b, 0.0f, dx(on), wide);
            },
            [&](const Cuda& on) {
              auto* const rounded = reinterpret_cast<Bfloat16*>(own(on));
              layer_norm_backward_rounded(device.handle(), rows, planes, width, dy(on), x(on),
                                          statistics(on), gain(on), rounded, dgain(on), dbias(on));
              gemm(device.handle(), false, false, rows, wide, wide, {nullptr, rounded}, wide,
                   factors(on), wide, 0.0f, dx(on), wide);
              device.synchronize();
            },
            4e-3);  // a gradient between two bfloat16 numbers may be rounded to either
      }
}

/// A product with a rounded result, and layer normalization of rounded rows: those of float32,
/// rounded.
void check_rounded_rows(Parity& p) {
  CudaDevice device(p.device_index(), Precision::bfloat16);
  for (const std::int64_t rows : {1, 3, 33})
    for (const std::int64_t planes : {1, 3})
      for (const std::int64_t width : {8, 64}) {
        p.sizes("rows {} planes {} width {}", rows, planes, width);
        const std::int64_t wide = planes * width, n = rows * wide;
        const auto x = p.floats(n, 0.5f), dy = p.floats(n), gain = p.floats(wide, 1.0f),
                   bias = p.floats(wide), statistics = p.floats(2 * rows * planes),
                   dgain = p.floats(wide), dbias = p.floats(wide), factors = p.floats(wide * wide),
                   of_y = p.floats(n), of_dx = p.floats(n), of_product = p.floats(n);
        const auto own_x = p.scratch(n, n), own_y = p.scratch(n, n), own_dy = p.scratch(n, n),
                   product = p.scratch(n, n);
        p.run(
            [&](const Cpu& on) {
              const auto rounded = [n](const float* from, float* to) {
                for (std::int64_t i = 0; i < n; ++i) to[i] = from_bf16(to_bf16(from[i]));
              };
              const View b{factors(on), wide};
              const auto read = [&](const float* from, float* to) {
                multiply_rounded({rows, wide, wide}, 8, View{from, wide}, b, 0.0f, to, wide);
              };
              rounded(x(on), own_x(on));
              rounded(dy(on), own_dy(on));
              layer_norm(on, rows, planes, width, own_x(on), gain(on), bias(on), own_y(on),
                         statistics(on));
              read(own_y(on), of_y(on));
              layer_norm_backward(on, rows, planes, width, own_dy(on), own_x(on), statistics(on),
                                  gain(on), own_dy(on), dgain(on), dbias(on));
              read(own_dy(on), of_dx(on));
              read(x(on), product(on));
              read(product(on), of_product(on));
            },
            [&](const Cuda& on) {
              const Cuda handle = device.handle();
              const auto at = [&](const Both<float>& buffer) {
                return reinterpret_cast<Bfloat16*>(buffer(on));
              };
              const auto read = [&](const Bfloat16* from, float* to) {
                gemm(handle, false, false, rows, wide, wide, {nullptr, from}, wide, factors(on),
                     wide, 0.0f, to, wide);
              };
              round_matrix(handle, rows, wide, x(on), at(own_x));
              round_matrix(handle, rows, wide, dy(on), at(own_dy));
              layer_norm_rounded(handle, rows, planes, width, at(own_x), gain(on), bias(on),
                                 at(own_y), statistics(on));
              read(at(own_y), of_y(on));
              layer_norm_backward_rounded(handle, rows, planes, width, at(own_dy), at(own_x),
                                          statistics(on), gain(on), at(own_dy), dgain(on),
                                          dbias(on));
              read(at(own_dy), of_dx(on));
              gemm_rounded(handle, false, rows, wide, wide, x(on), factors(on), at(product), wide);
              read(at(product), of_product(on));
              device.synchronize();
            },
            8e-3);  // a number between two bfloat16 numbers may be rounded to either
      }
}

/// The end of a residual layer: what it rounds is its result and the gradient of the branch.
void check_residual_norm(Parity& p) {
  CudaDevice device(p.device_index(), Precision::bfloat16);
  for (const std::int64_t width : {7, 12, 64}) {  // 7, 12: without a copy of the result
    constexpr std::int64_t rows = 33;
    const std::int64_t n = rows * width;
    p.sizes("width {}", width);
    const auto x = p.floats(n), branch = p.floats(n), sum = p.floats(n), y = p.floats(n),
               dy = p.floats(n), gain = p.floats(width, 1.0f), bias = p.floats(width),
               statistics = p.floats(2 * rows), dgain = p.floats(width), dbias = p.floats(width),
               factors = p.floats(width * width), of_y = p.floats(n), of_branch = p.floats(n);
    const auto read_branch = p.scratch(n, n);  // the branch rounded
    const auto own_y = p.scratch(n, rows * rounded_stride(width)),
               own_branch = p.scratch(n, rows * rounded_stride(width));
    const auto call = [&](const auto& on, const auto& device_on, const float* branch_f32,
                          const Bfloat16* branch_rounded, Bfloat16* y_rounded, float* dbranch,
                          Bfloat16* dbranch_rounded) {
      const ResidualNorm a{.rows = rows,
                           .width = width,
                           .x = x(on),
                           .branch = branch_f32,
                           .branch_rounded = branch_rounded,
                           .gain = gain(on),
                           .bias = bias(on),
                           .sum = sum(on),
                           .y = y(on),
                           .statistics = statistics(on),
                           .rounded = y_rounded};
      const Dropout dropout{.p = 0.3f, .key = 5, .stream = 7, .map = {rows, rows}};
      residual_norm(device_on, a, dropout);
      residual_norm_backward(device_on, a, dropout,
                             {.dy = dy(on),
                              .dx = dy(on),
                              .dbranch = dbranch,
                              .dbranch_rounded = dbranch_rounded,
                              .dgain = dgain(on),
                              .dbias = dbias(on)});
    };
    p.run(
        [&](const Cpu& on) {
          for (std::int64_t i = 0; i < n; ++i)
            read_branch(on)[i] = width % 8 == 0 ? from_bf16(to_bf16(branch(on)[i])) : branch(on)[i];
          call(on, on, read_branch(on), nullptr, nullptr, own_branch(on), nullptr);
          const View b{factors(on), width};
          multiply_rounded({rows, width, width}, 8, View{y(on), width}, b, 0.0f, of_y(on), width);
          multiply_rounded({rows, width, width}, 8, View{own_branch(on), width}, b, 0.0f,
                           of_branch(on), width);
        },
        [&](const Cuda& on) {
          auto *const y_rounded = reinterpret_cast<Bfloat16*>(own_y(on)),
                      *const branch_rounded = reinterpret_cast<Bfloat16*>(own_branch(on));
          const Cuda handle = device.handle();
          auto* const branch_read = reinterpret_cast<Bfloat16*>(read_branch(on));
          round_matrix(handle, rows, width, branch(on), branch_read);
          if (width % 8 == 0)
            call(on, handle, nullptr, branch_read, y_rounded, nullptr, branch_rounded);
          else
            call(on, handle, branch(on), nullptr, nullptr, nullptr, branch_rounded);
          if (width % 8 != 0) round_matrix(handle, rows, width, y(on), y_rounded);
          for (const auto& [from, to] :
               {std::pair{y_rounded, of_y(on)}, std::pair{branch_rounded, of_branch(on)}})
            gemm(handle, false, false, rows, width, width, {nullptr, from}, width, factors(on),
                 width, 0.0f, to, width);
          device.synchronize();
        },
        4e-3);  // as above
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
      {"bfloat16_softmax_loss", check_softmax_loss},
      {"bfloat16_layer_norm", check_layer_norm},
      {"bfloat16_rows", check_rounded_rows},
      {"bfloat16_residual_norm", check_residual_norm},
      {"precision_fraction", check_fraction},
      {"gemm_packed_of_each", [](Parity& p) { check_packed_of_each(p, Precision::float32); }},
      {"bfloat16_packed_of_each", [](Parity& p) { check_packed_of_each(p, Precision::bfloat16); }},
  };
}

}  // namespace nmt::test
