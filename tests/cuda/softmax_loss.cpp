#include "kernels/softmax_loss.h"

#include "kernels/pointwise.h"
#include "tests/cuda/table.h"

#include <cmath>

namespace nmt::test {
namespace {

using namespace nmt::kernels;

void losses(Parity& p) {
  struct Sizes {
    std::int64_t rows, width, vocabulary;
  };
  // Also more rows than a chunk of logits has (64 of width 3), and a vocabulary of which a thread
  // of a block with the sum of the gradients has more than four columns.
  for (const auto [rows, width, vocabulary] :
       {Sizes{1, 1, 1}, Sizes{3, 31, 33}, Sizes{31, 33, 257}, Sizes{33, 257, 3}, Sizes{257, 3, 31},
        Sizes{5, 4, 1500}, Sizes{200, 3, 1028}, Sizes{70, 3, 2100}, Sizes{0, 3, 5}})
    for (const bool smoothed : {false, true})
      for (const bool gradients : {false, true}) {
        p.sizes("rows {} width {} vocabulary {} smoothed {} gradients {}", rows, width, vocabulary,
                smoothed, gradients);
        const auto x = p.floats(rows * width), table = p.floats(vocabulary * width),
                   bias = p.floats(vocabulary), dx = p.floats(rows * width),
                   dtable = p.floats(vocabulary * width), dbias = p.floats(vocabulary);
        const auto target =
            p.integers(rows, static_cast<std::int32_t>(vocabulary), smoothed ? 0 : no_target);
        const auto scratch = p.scratch_of(
            [&](const auto& on) { return softmax_loss_scratch(on, rows, width, vocabulary); });
        const auto sums = p.doubles({0.5, 0.25});
        p.run(
            [&](const auto& on) {
              SoftmaxLoss loss;
              loss.rows = rows;
              loss.width = width;
              loss.vocabulary = vocabulary;
              loss.x = x(on);
              loss.table = table(on);
              loss.bias = smoothed ? bias(on) : nullptr;
              loss.target = target(on);
              loss.smoothing = smoothed ? 0.1f : 0.0f;
              loss.scale = 0.5f;
              loss.dx = gradients ? dx(on) : nullptr;
              loss.dtable = gradients ? dtable(on) : nullptr;
              if (smoothed && rows > 0) {  // the old gradient is not read
                loss.dtable_beta = 0.0f;
                if (gradients) fill(on, dtable(on), vocabulary * width, NAN);
              }
              loss.dbias = gradients && smoothed ? dbias(on) : nullptr;
              loss.cross_entropy = sums(on);
              loss.smoothed = sums(on) + 1;
              loss.scratch = scratch(on);
              softmax_loss(on, loss);
            },
            1e-5);
      }
}

}  // namespace

std::vector<ParityRow> softmax_loss_parity() {
  return {
      {"softmax_loss", losses},
      {"log_sum_exp",
       [](Parity& p) {
         for (const std::int64_t rows : {1, 3, 33})
           for (const std::int64_t vocabulary : {1, 3, 31, 33, 257, 3000}) {
             // Far from 0: exponentials are relative to the maximum.
             for (const float mean : {40.0f, -200.0f}) {
               p.sizes("rows {} vocabulary {} mean {}", rows, vocabulary, mean);
               const auto logits = p.floats(rows * vocabulary, mean), out = p.floats(rows);
               p.run(
                   [&](const auto& on) { log_sum_exp(on, rows, vocabulary, logits(on), out(on)); });
             }
           }
       }},
  };
}

}  // namespace nmt::test
