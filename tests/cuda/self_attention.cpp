#include "kernels/self_attention.h"

#include "tests/cuda/table.h"

namespace nmt::test {
namespace {

using namespace nmt::kernels;

void for_all(Parity& p, const std::function<void(SelfAttention, Both<std::int32_t>)>& body) {
  for (const std::int64_t steps : {1, 7, 45})
    for (const std::int64_t heads : {1, 3})
      for (const std::int64_t sentences : {1, 4}) {
        const SelfAttention a{steps, sentences, heads, steps == 7 ? 6 : 2, nullptr};
        p.sizes("steps {} sentences {} heads {}", steps, sentences, heads);
        std::vector<std::int32_t> lengths;
        for (std::int64_t b = 0; b < sentences; ++b)
          lengths.push_back(static_cast<std::int32_t>(1 + (steps - 1 + 5 * b) % steps));
        body(a, p.integers(lengths));
      }
}

SelfAttention with(SelfAttention a, const std::int32_t* lengths) {
  a.lengths = lengths;
  return a;
}

}  // namespace

std::vector<ParityRow> self_attention_parity() {
  return {
      {"self_attention_softmax",
       [](Parity& p) {
         for_all(p, [&](const SelfAttention& a, const auto& lengths) {
           const auto scores = p.floats(a.groups() * a.steps * a.steps);
           p.run([&](const auto& on) {
             self_attention_softmax(on, with(a, lengths(on)), scores(on));
           });
         });
       }},
      {"self_attention_softmax_backward",
       [](Parity& p) {
         for_all(p, [&](const SelfAttention& a, const auto& lengths) {
           const std::int64_t n = a.groups() * a.steps * a.steps;
           const auto weights = p.floats(n), gradient = p.floats(n);
           p.run([&](const auto& on) {
             self_attention_softmax_backward(on, with(a, lengths(on)), weights(on), gradient(on));
           });
         });
       }},
      {"rotate",
       [](Parity& p) {
         for_all(p, [&](const SelfAttention& a, const auto&) {
           const std::int64_t n = a.steps * a.groups() * 3 * a.size;
           const auto x = p.floats(n), y = p.floats(n), turns = p.floats(a.steps * a.size);
           p.run([&](const auto& on) {
             rotate(on, a, turns(on), false, x(on), y(on));
             rotate(on, a, turns(on), true, x(on), x(on));
           });
         });
       }},
  };
}

}  // namespace nmt::test
