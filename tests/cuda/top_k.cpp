#include "kernels/decoding/top_k.h"

#include "kernels/softmax_loss.h"
#include "tests/cuda/table.h"

#include <limits>

namespace nmt::test {
namespace {

using namespace nmt::kernels;

constexpr std::int64_t rows = 3;

// Rows with many ties, among them -inf and both zeros; `nan`: the second one has two NaN.
std::vector<float> tied(Parity& p, std::int64_t width, bool nan) {
  std::vector<float> x(static_cast<std::size_t>(rows * width));
  for (float& v : x) {
    const auto drawn = static_cast<int>(p.rng().below(12)) - 6;
    v = drawn == -6   ? -std::numeric_limits<float>::infinity()
        : drawn == -5 ? -0.0f
                      : static_cast<float>(drawn);
  }
  if (nan)
    for (const std::int64_t at : {width / 2, width - 1})
      x[static_cast<std::size_t>(width + at)] = NAN;
  return x;
}

void greatest(Parity& p, bool nan) {
  const std::vector<std::int32_t> skip{1, 2};
  for (const std::int64_t width : {1, 3, 31, 33, 257, 1500})
    for (const int k : {1, 4, 40}) {
      p.sizes("width {} k {} nan {}", width, k, nan);
      const auto x = p.values(tied(p, width, nan), true), best = p.floats(rows * k);
      const auto columns = p.integers(rows * k, 100);
      p.run([&](const auto& on) { top_k(on, rows, width, x(on), k, skip, best(on), columns(on)); },
            0);
    }
}

// Rows without ties, so that the best ones are in different parts.
std::vector<float> untied(Parity& p, std::int64_t width) {
  std::vector<float> x(static_cast<std::size_t>(rows * width));
  for (float& v : x) v = 8 * p.rng().uniform() - 4;
  return x;
}

// On CUDA in parts, first their lists and then those of rows; on the CPU in one go.
template <class Values>
void greatest_of_parts(Parity& p, const char* name, Values values_of) {
  const std::vector<std::int32_t> skip{1, 2, 1030};
  for (const std::int64_t width : {1, 33, 1024, 1031, 5000, 33333})
    for (const int k : {1, 4, 40}) {
      p.sizes("width {} k {} {}", width, k, name);
      const std::int64_t lists = rows * row_parts(width);
      const auto x = p.values(values_of(width), true), best = p.floats(rows * k),
                 sums = p.floats(rows), keys = p.scratch(0, 2 * lists * k),
                 part_sums = p.scratch(0, 2 * lists);
      const auto columns = p.integers(rows * k, 100);
      p.run(
          [&](const Cpu& on) {
            top_k(on, rows, width, x(on), k, skip, best(on), columns(on));
            log_sum_exp(on, rows, width, x(on), sums(on));
          },
          [&](const Cuda& on) {
            auto* const first = reinterpret_cast<std::uint64_t*>(keys(on));
            best_of_parts(on, rows, width, x(on), k, skip, first, part_sums(on));
            join_parts(on, rows, {row_parts(width), k, first, part_sums(on)}, best(on), columns(on),
                       sums(on));
          },
          1e-6);
    }
}

}  // namespace

std::vector<ParityRow> top_k_parity() {
  return {
      {"top_k", [](Parity& p) { greatest(p, false); }},
      {"top_k_nan", [](Parity& p) { greatest(p, true); }},
      {"top_k_of_parts",
       [](Parity& p) {
         greatest_of_parts(p, "tied", [&](std::int64_t width) { return tied(p, width, false); });
         greatest_of_parts(p, "untied", [&](std::int64_t width) { return untied(p, width); });
       }},
      {"top_k_of_parts_nan",
       [](Parity& p) {
         greatest_of_parts(p, "nan", [&](std::int64_t width) { return tied(p, width, true); });
       }},
  };
}

}  // namespace nmt::test
