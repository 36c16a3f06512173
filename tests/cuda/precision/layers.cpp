// Layers in bfloat16, their gradients too, against sums in double of inputs rounded one by one.

#include "config/precision.h"
#include "kernels/layer_norm.h"
#include "kernels/products/gemm.h"
#include "kernels/products/product_input.h"
#include "kernels/softmax_loss.h"
#include "tests/cuda/precision/rounded_products.h"
#include "tests/cuda/table.h"

#include <cmath>

namespace nmt::test {
namespace {

using namespace nmt::kernels;

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

}  // namespace

std::vector<ParityRow> precision_layers_parity() {
  return {
      {"bfloat16_softmax_loss", check_softmax_loss},
      {"bfloat16_layer_norm", check_layer_norm},
      {"bfloat16_rows", check_rounded_rows},
      {"bfloat16_residual_norm", check_residual_norm},
  };
}

}  // namespace nmt::test
