#include "kernels/layer_norm.h"

#include "tests/cuda/table.h"

namespace nmt::test {
namespace {

using namespace nmt::kernels;

constexpr double tolerance = 1e-5;

}  // namespace

std::vector<ParityRow> layer_norm_parity() {
  return {
      {"layer_norm",
       [](Parity& p) {
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
                     layer_norm(on, rows, planes, width, x(on), gain(on), bias(on), y(on),
                                statistics(on));
                     layer_norm(on, rows, planes, width, bare(on), gain(on), nullptr, bare(on),
                                nullptr);
                   },
                   tolerance);
             }
       }},
      {"layer_norm_backward",
       [](Parity& p) {
         for (const std::int64_t rows : {1, 3, 33, 300})
           for (const std::int64_t planes : {1, 3})
             for (const std::int64_t width :
                  {3, 31, 257, 5000, 6144}) {  // the last: too wide for shared memory
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
                     layer_norm_backward(on, rows, planes, width, dy(on), x(on), statistics(on),
                                         gain(on), dx(on), dgain(on), dbias(on));
                     layer_norm_backward(on, rows, planes, width, in_place(on), x(on),
                                         statistics(on), gain(on), in_place(on), dgain(on),
                                         static_cast<float*>(nullptr));
                   },
                   tolerance);
             }
       }},
  };
}

}  // namespace nmt::test
