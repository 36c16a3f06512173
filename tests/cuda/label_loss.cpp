#include "kernels/label_loss.h"

#include "kernels/softmax_loss.h"
#include "tests/cuda/table.h"

namespace nmt::test {

std::vector<ParityRow> label_loss_parity() {
  using namespace nmt::kernels;
  return {
      {"label_loss",
       [](Parity& p) {
         for (const std::int64_t rows : {1, 33, 300})
           for (const std::int64_t labels : {1, 3, 33}) {
             p.sizes("rows {} labels {}", rows, labels);
             const auto logits = p.floats(rows * labels), slopes = p.floats(rows * labels);
             const auto target = p.integers(rows, static_cast<std::int32_t>(labels), no_target);
             const auto sums = p.doubles({1, 2}),
                        scratch = p.doubles(std::vector<double>(2 * rows));
             p.run([&](const auto& on) {
               label_loss(on, {rows, labels, logits(on), target(on), 0.1f, slopes(on), sums(on),
                               sums(on) + 1, scratch(on)});
             });
           }
       }},
      {"crf_loss",
       [](Parity& p) {
         for (const std::int64_t steps : {1, 2, 7})
           for (const std::int64_t sentences : {1, 5})
             for (const std::int64_t labels : {1, 4, 17}) {
               p.sizes("steps {} sentences {} labels {}", steps, sentences, labels);
               std::vector<std::int32_t> sizes;
               for (std::int64_t b = 0; b < sentences; ++b)
                 sizes.push_back(static_cast<std::int32_t>(1 + (steps - 1 + b) % steps));
               const auto emissions = p.floats(steps * sentences * labels),
                          slopes = p.floats(steps * sentences * labels),
                          transitions = p.floats((labels + 2) * labels),
                          sum = p.floats((labels + 2) * labels);
               const auto target = p.integers(steps * sentences, static_cast<std::int32_t>(labels));
               const auto lengths = p.integers(sizes);
               const auto sums = p.doubles({1, 2});
               const auto scratch = p.doubles(std::vector<double>(
                   static_cast<std::size_t>(crf_scratch(steps, sentences, labels))));
               p.run([&](const auto& on) {
                 crf_loss(on,
                          {steps, sentences, labels, emissions(on), transitions(on), target(on),
                           lengths(on), slopes(on), sum(on), sums(on), sums(on) + 1, scratch(on)});
               });
             }
       }},
  };
}

}  // namespace nmt::test
