#include "kernels/decoding/ensemble.h"

#include "tests/cuda/table.h"

#include <cmath>
#include <limits>

namespace nmt::test {

std::vector<ParityRow> ensemble_parity() {
  return {
      {"combine_scores", [](Parity& p) {
         using namespace nmt::kernels;
         constexpr float none = -std::numeric_limits<float>::infinity();
         for (const bool probabilities : {false, true})
           for (const std::int64_t vocabulary : {1, 3, 33, 257}) {
             constexpr std::int64_t rows = 5;
             p.sizes("vocabulary {} probabilities {}", vocabulary, probabilities);
             const auto a = p.floats(rows * vocabulary), b = p.floats(rows * vocabulary),
                        a_normalizer = p.floats(rows, 3.0f), b_normalizer = p.floats(rows, 4.0f),
                        out = p.floats(rows * vocabulary);
             // Values whose e^x underflows, 0, and NaN.
             const auto low = p.values<float>({-300, none, none, std::nanf("")}, true),
                        high = p.values<float>({-310, -500, none, none}, true),
                        zero = p.values<float>({0}, true), rare = p.floats(4);
             p.run([&](const auto& on) {
               const MemberScores members[] = {{a(on), a_normalizer(on), 0.25},
                                               {b(on), b_normalizer(on), 0.75}};
               combine_scores(on, rows, vocabulary, members, probabilities, out(on));
               const MemberScores far[] = {{low(on), zero(on), 0.25}, {high(on), zero(on), 0.75}};
               combine_scores(on, 1, 4, far, probabilities, rare(on));
             });
           }
       }}};
}

}  // namespace nmt::test
