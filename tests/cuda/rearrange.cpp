#include "kernels/recurrent/rearrange.h"

#include "kernels/recurrent/convolution.h"
#include "tests/cuda/cells.h"
#include "tests/cuda/table.h"

namespace nmt::test {
namespace {

void check_convolution(Parity& p, std::int64_t taps, std::int64_t width, bool reverse,
                       bool continued) {
  constexpr std::int64_t steps = 5, batch = 7;
  p.sizes("taps {} width {} reverse {} continued {}", taps, width, reverse, continued);
  const std::int64_t n = steps * batch * width;
  const auto x = p.floats(n), y = p.floats(n), dy = p.floats(n), dx = p.floats(n),
             weight = p.floats(taps * width), dweight = p.floats(taps * width),
             bias = p.floats(width), dbias = p.floats(width),
             before = p.floats(batch * (taps - 1) * width),
             last = p.floats(batch * (taps - 1) * width), mask = sentence_mask(p, steps, batch);
  p.run(
      [&](const auto& on) {
        kernels::Convolution a;
        a.taps = taps;
        a.steps = steps;
        a.batch = batch;
        a.width = width;
        a.reverse = reverse;
        a.x = x(on);
        a.mask = continued ? nullptr : mask(on);
        a.before = continued ? before(on) : nullptr;
        a.weight = weight(on);
        a.bias = bias(on);
        kernels::convolution_forward(on, a, y(on));
        kernels::convolution_backward(on, a, dy(on), dx(on), dweight(on), dbias(on));
        if (!reverse) kernels::convolution_last(on, a, last(on));
      },
      2e-6);
}

}  // namespace

std::vector<ParityRow> rearrange_parity() {
  using namespace nmt::kernels;
  return {
      {"rearrange",
       [](Parity& p) {
         for (const std::int64_t rows : {1, 3, 33})
           for (const std::int64_t groups : {1, 2, 3, 4, 8})
             for (const std::int64_t part : {1, 31, 33}) {
               const std::int64_t width = groups * part;
               p.sizes("rows {} groups {} width {}", rows, groups, width);
               const auto x = p.floats(rows * width), y = p.floats(rows * width),
                          dx = p.floats(rows * width), sum = p.floats(rows * width);
               p.run(
                   [&](const auto& on) {
                     rearrange(on, rows, groups, width, x(on), y(on));
                     rearrange_back(on, rows, groups, width, x(on), false, dx(on));
                     rearrange_back(on, rows, groups, width, x(on), true, sum(on));
                   },
                   0);
             }
       }},
      {"convolution",
       [](Parity& p) {
         for (const std::int64_t taps : {2, 4, 7})
           for (const std::int64_t width : {1, 33}) {
             check_convolution(p, taps, width, false, false);
             check_convolution(p, taps, width, true, false);
             check_convolution(p, taps, width, false, true);
           }
       }},
  };
}

}  // namespace nmt::test
