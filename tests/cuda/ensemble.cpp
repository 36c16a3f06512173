#include "nmt/kernels/ensemble.h"

#include "tests/cuda/table.h"

namespace nmt::test {

std::vector<ParityRow> ensemble_parity() {
  return {{"combine_scores", [](Parity& p) {
             using namespace nmt::kernels;
             for (const bool probabilities : {false, true})
               for (const std::int64_t vocabulary : {1, 3, 33, 257}) {
                 constexpr std::int64_t rows = 5;
                 p.sizes("vocabulary {} probabilities {}", vocabulary, probabilities);
                 const auto a = p.floats(rows * vocabulary), b = p.floats(rows * vocabulary),
                            a_normalizer = p.floats(rows, 3.0f), b_normalizer = p.floats(rows, 4.0f),
                            out = p.floats(rows * vocabulary);
                 p.run([&](const auto& on) {
                   const MemberScores members[] = {{a(on), a_normalizer(on), 0.25}, {b(on), b_normalizer(on), 0.75}};
                   combine_scores(on, rows, vocabulary, members, probabilities, out(on));
                 });
               }
           }}};
}

}  // namespace nmt::test
