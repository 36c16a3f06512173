#include "kernels/optimizer.h"

#include "tests/cuda/table.h"

#include <cmath>

namespace nmt::test {
namespace {

using namespace nmt::kernels;

constexpr std::int64_t tensors[] = {1, 3, 31, 0, 33, 257, 9001, 4096, 8192};

// The tensors of a model on both devices.
struct Parameters {
  Parameters(Parity& p, int states, bool averages) {
    for (const std::int64_t n : tensors) {
      columns.push_back({p.floats(n), p.floats(n), p.floats(states >= 1 ? n : 0, 1.0f),
                         p.floats(states >= 2 ? n : 0, 1.0f), p.floats(averages ? n : 0)});
      sizes.push_back({n, states, averages});
    }
  }
  template <class Backend>
  std::vector<OptimizerSlice> slices(const Backend& on) const {
    std::vector<OptimizerSlice> all;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto& [value, gradient, first, second, average] = columns[i];
      const auto [n, states, averages] = sizes[i];
      all.push_back({n, value(on), gradient(on), states >= 1 ? first(on) : nullptr,
                     states >= 2 ? second(on) : nullptr, averages ? average(on) : nullptr, nullptr,
                     i % 2 ? 1 : 0});  // every other gradient stays
    }
    return all;
  }
  struct Columns {
    Both<float> value, gradient, first, second, average;
  };
  struct Sizes {
    std::int64_t n;
    int states;
    bool averages;
  };
  std::vector<Columns> columns;
  std::vector<Sizes> sizes;
};

template <class Rule, class Update>
ParityRow update_row(const char* name, Rule rule, Update update) {
  rule.rate = 0.01f;
  return {name, [=](Parity& p) {
            for (const float smoothing : {0.0f, 0.3f}) {
              p.sizes("smoothing {}", smoothing);
              Rule step = rule;
              step.smoothing = smoothing;
              const Parameters parameters(p, Rule::states, smoothing != 0.0f),
                  skipped(p, Rule::states, smoothing != 0.0f);
              const auto factors = p.values<float>({0.5f, NAN}, true);
              p.run(
                  [&](const auto& on) {
                    const auto count = static_cast<std::int64_t>(std::size(tensors));
                    for (int i = 0; i < 2; ++i) {
                      step.gradient_factor = factors(on);
                      update(on, parameters.slices(on).data(), count, step);
                      step.gradient_factor = factors(on) + 1;
                      update(on, skipped.slices(on).data(), count, step);
                    }
                  },
                  1e-5);
            }
          }};
}

AdamStep adam_step() {
  AdamStep step;
  step.epsilon = 1e-3f;
  step.decay = 1e-3f;
  return step;
}

}  // namespace

std::vector<ParityRow> optimizer_parity() {
  return {
      {"gradient_norm_squared",
       [](Parity& p) {
         p.sizes("all");
         const Parameters parameters(p, 0, false);
         constexpr std::int64_t many = 1100 * 4096;  // more chunks than a block has threads
         const auto large = p.floats(many);
         const auto sums = p.doubles({-1, -1});
         p.run(
             [&](const auto& on) {
               auto slices = parameters.slices(on);
               slices.push_back({many, nullptr, large(on)});
               gradient_norm_squared(on, slices.data(), static_cast<std::int64_t>(slices.size()),
                                     sums(on));
               gradient_norm_squared(on, nullptr, 0, sums(on) + 1);
             },
             1e-12);
       }},
      {"clip",
       [](Parity& p) {
         p.sizes("limits");
         const auto squares = p.doubles({36, 0, NAN, INFINITY});
         const auto factors = p.floats(8);
         p.run(
             [&](const auto& on) {
               for (int i = 0; i < 4; ++i)
                 for (int limited = 0; limited < 2; ++limited)
                   clip(on, squares(on) + i, 0.25, 0.5 * limited, factors(on) + 2 * i + limited);
             },
             0);
       }},
      update_row("adam", adam_step(),
                 [](const auto& on, auto slices, auto count, const auto& step) {
                   adam(on, slices, count, step);
                 }),
      {"adam_rounded",
       [](Parity& p) {
         for (const bool skipped : {false, true}) {  // a skipped update rounds the old weights
           p.sizes("skipped {}", skipped);
           AdamStep step = adam_step();
           const auto factor = p.values<float>({skipped ? NAN : 0.5f}, true);
           const Parameters parameters(p, AdamStep::states, false);
           std::vector<Both<Bfloat16>> copies;
           for (const std::int64_t n : tensors)
             copies.push_back(p.values(std::vector<Bfloat16>(static_cast<std::size_t>(n)), false));
           auto slices = parameters.slices(p.cuda());
           for (std::size_t i = 0; i < slices.size(); ++i) slices[i].rounded = copies[i](p.cuda());
           step.gradient_factor = factor(p.cuda());
           adam(p.cuda(), slices.data(), static_cast<std::int64_t>(slices.size()), step);
           for (const OptimizerSlice& slice : slices)
             p.expect_rounded(slice.n, slice.value, slice.rounded);
         }
       }},
      update_row("adadelta", AdadeltaStep(),
                 [](const auto& on, auto slices, auto count, const auto& step) {
                   adadelta(on, slices, count, step);
                 }),
      update_row("adagrad", AdagradStep(),
                 [](const auto& on, auto slices, auto count, const auto& step) {
                   adagrad(on, slices, count, step);
                 }),
      update_row("sgd", SgdStep(),
                 [](const auto& on, auto slices, auto count, const auto& step) {
                   sgd(on, slices, count, step);
                 }),
      update_row("momentum", MomentumStep(),
                 [](const auto& on, auto slices, auto count, const auto& step) {
                   momentum(on, slices, count, step);
                 }),
  };
}

}  // namespace nmt::test
