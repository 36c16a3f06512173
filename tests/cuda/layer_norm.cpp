#include "kernels/layer_norm.h"

#include "tests/cuda/table.h"

namespace nmt::test {
namespace {

using namespace nmt::kernels;

constexpr double tolerance = 1e-5;

// check(ResidualNorm) for sizes and dropouts: none, of all rows, and of a part of a batch.
template <class Check>
void residuals(Parity& p, Check check) {
  for (const std::int64_t rows : {1, 3, 33})
    for (const std::int64_t width : {3, 31, 64, 260, 2048})
      for (const int drops : {0, 1, 2}) {
        if (width > 260 && rows != 3) continue;
        p.sizes("rows {} width {} dropout {}", rows, width, drops);
        ResidualNorm a;
        a.rows = rows;
        a.width = width;
        Dropout dropout;
        if (drops > 0) dropout = {.p = 0.3f, .key = 0x123456789ABCDEFull, .stream = 77};
        if (drops == 1) dropout.map = {.batch = rows, .step = rows};
        if (drops == 2) dropout.map = {.batch = 3, .step = 17, .first = 2, .stride = 5};
        check(a, dropout);
      }
}

void check_layer_norm(Parity& p) {
  for (const std::int64_t rows : {1, 3, 33})
    for (const std::int64_t planes : {1, 3})
      for (const std::int64_t width : {3, 31, 33, 64, 257, 600}) {
        p.sizes("rows {} planes {} width {}", rows, planes, width);
        const std::int64_t n = rows * planes * width;
        const auto x = p.floats(n, 0.5f), gain = p.floats(planes * width, 1.0f),
                   bias = p.floats(planes * width), y = p.floats(n),
                   statistics = p.floats(2 * rows * planes), bare = p.floats(n);
        p.run(
            [&](const auto& on) {
              layer_norm(on, rows, planes, width, x(on), gain(on), bias(on), y(on), statistics(on));
              layer_norm(on, rows, planes, width, bare(on), gain(on), nullptr, bare(on), nullptr);
            },
            tolerance);
      }
}

void check_layer_norm_backward(Parity& p) {
  for (const std::int64_t rows : {1, 3, 33, 300})
    for (const std::int64_t planes : {1, 3})
      for (const std::int64_t width :
           {3, 31, 64, 256, 257, 1000, 1024, 5000, 6144}) {  // the last: too wide for shared memory
        if (width > 257 && rows != 3) continue;
        p.sizes("rows {} planes {} width {}", rows, planes, width);
        const std::int64_t n = rows * planes * width;
        const auto dy = p.floats(n), x = p.floats(n),
                   statistics = p.floats(2 * rows * planes, 2.0f),
                   gain = p.floats(planes * width, 1.0f), dx = p.floats(n),
                   dgain = p.floats(planes * width), dbias = p.floats(planes * width),
                   in_place = p.floats(n);
        p.run(
            [&](const auto& on) {
              layer_norm_backward(on, rows, planes, width, dy(on), x(on), statistics(on), gain(on),
                                  dx(on), dgain(on), dbias(on));
              layer_norm_backward(on, rows, planes, width, in_place(on), x(on), statistics(on),
                                  gain(on), in_place(on), dgain(on), static_cast<float*>(nullptr));
            },
            tolerance);
      }
}

void check_residual_norm(Parity& p) {
  residuals(p, [&](const ResidualNorm& a, const Dropout& dropout) {
    const std::int64_t n = a.rows * a.width;
    const auto x = p.floats(n), branch = p.floats(n), gain = p.floats(a.width, 1.0f),
               bias = p.floats(a.width), sum = p.floats(n), y = p.floats(n), in_place = p.floats(n),
               other = p.floats(n), statistics = p.floats(4 * a.rows);
    p.run(
        [&](const auto& on) {
          ResidualNorm b = a;
          b.x = x(on);
          b.branch = branch(on);
          b.gain = gain(on);
          b.bias = bias(on);
          b.sum = sum(on);
          b.y = y(on);
          b.statistics = statistics(on);
          residual_norm(on, b, dropout);
          b.branch = b.sum = in_place(on);
          b.y = other(on);
          b.statistics += 2 * a.rows;
          residual_norm(on, b, dropout);
        },
        tolerance);
  });
}

void check_residual_norm_backward(Parity& p) {
  residuals(p, [&](const ResidualNorm& a, const Dropout& dropout) {
    const std::int64_t n = a.rows * a.width;
    const auto sum = p.floats(n), statistics = p.floats(2 * a.rows, 2.0f),
               gain = p.floats(a.width, 1.0f), dy = p.floats(n), in_place = p.floats(n),
               dx = p.floats(n), first = p.floats(n), second = p.floats(n), third = p.floats(n),
               frozen = p.floats(n), dgain = p.floats(a.width), dbias = p.floats(a.width);
    p.run(
        [&](const auto& on) {
          ResidualNorm b = a;
          b.sum = sum(on);
          b.statistics = statistics(on);
          b.gain = gain(on);
          residual_norm_backward(on, b, dropout,
                                 {.dy = in_place(on),
                                  .dx = in_place(on),
                                  .dbranch = first(on),
                                  .dgain = dgain(on),
                                  .dbias = dbias(on)});
          residual_norm_backward(on, b, dropout,
                                 {.dy = dy(on),
                                  .dx = dx(on),
                                  .accumulate = true,
                                  .dbranch = second(on),
                                  .dgain = dgain(on),
                                  .dbias = dbias(on)});
          residual_norm_backward(on, b, dropout,
                                 {.dy = frozen(on),
                                  .dx = nullptr,
                                  .dbranch = third(on),
                                  .dgain = dgain(on),
                                  .dbias = dbias(on)});
          fill(on, frozen(on), n, 0.0f);
          fill(on, dy(on), n, 0.0f);  // not kept
        },
        tolerance);
  });
}

}  // namespace

std::vector<ParityRow> layer_norm_parity() {
  return {
      {"layer_norm", check_layer_norm},
      {"layer_norm_backward", check_layer_norm_backward},
      {"residual_norm", check_residual_norm},
      {"residual_norm_backward", check_residual_norm_backward},
  };
}

}  // namespace nmt::test
