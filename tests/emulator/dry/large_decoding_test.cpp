// Kernels of a search with more than 2^31 elements.

#include "dry/large.h"
#include "kernels/decoding/beam.h"
#include "kernels/decoding/ensemble.h"
#include "kernels/decoding/step_rows.h"
#include "kernels/decoding/top_k.h"
#include "kernels/softmax_loss.h"

#include <array>
#include <numeric>
#include <vector>

namespace nmt::test {
namespace {

using kernels::Bfloat16;
using kernels::RowsOfMatrix;

class LargeDecoding : public LargeShapes {};

// The logits of a search in parts, and the best of each row.
TEST_F(LargeDecoding, TopK) {
  constexpr std::int64_t rows = 84'000, vocabulary = 32'768;
  static_assert(rows * vocabulary > large);
  const std::int64_t parts = kernels::row_parts(vocabulary);
  const float* const x = make(rows * vocabulary);
  auto* const keys = make<std::uint64_t>(rows * parts * 4);
  float *const sums = make(2 * rows * parts), *const values = make(rows * 4);
  auto* const columns = make<std::int32_t>(rows * 4);
  const auto expect_read = [&](const char* name) {
    EXPECT_NEAR(work(name).read, 4.0 * rows * vocabulary, 0.12 * rows * vocabulary) << name;
  };
  kernels::best_of_parts(on(), rows, vocabulary, x, 4, {}, keys, sums);
  expect_read("best_of_parts_kernel");
  kernels::join_parts(on(), rows, {parts, 4, keys, sums}, values, columns, make(rows));
  dry->clear();
  kernels::top_k(on(), rows, vocabulary, x, 4, {}, values, columns);
  expect_read("top_k_kernel");
  kernels::log_sum_exp(on(), rows, vocabulary, x, values);
  expect_read("best_of_parts_kernel");
}

TEST_F(LargeDecoding, CombineScores) {
  constexpr std::int64_t rows = 84'000, vocabulary = 32'768, n = rows * vocabulary;
  const float* const x = make(n);
  float* const y = make(n);
  const std::array<kernels::MemberScores, 2> members{{{x, x, 0.5}, {x, x, 0.5}}};
  for (const bool probabilities : {false, true}) {
    kernels::combine_scores(on(), rows, vocabulary, members, probabilities, y);
    expect_written("each: combine_scores", 4.0 * n);
  }
}

TEST_F(LargeDecoding, StepRows) {
  constexpr std::int64_t rows = 1 << 16;
  std::vector<std::int32_t> back(rows);
  std::iota(back.rbegin(), back.rend(), 0);
  for (const std::int64_t width : {41'000, 41'002}) {
    const double all = 4.0 * static_cast<double>(rows * width);
    const std::int32_t* const ids = upload(back);
    const float* const x = make(rows * width);
    float* const y = make(rows * width);
    auto* const rounded = make<Bfloat16>(rows * width);
    kernels::gather_rows_of_each(
        on(), rows, ids, std::array<RowsOfMatrix, 2>{{{width, x, y}, {8, x, make(8 * rows)}}});
    expect_written("gather_rows_kernel", all);
    kernels::join_columns(on(), rows, std::array<RowsOfMatrix, 2>{{{1000, x}, {width - 1000, x}}},
                          y, rounded);
    expect_written("join_columns_kernel", 1.5 * all);
    kernels::tanh_rounded(on(), rows * width, x, y, rounded);
    expect_written("each: tanh_rounded", 1.5 * all);
    if (width % 4 != 0) continue;
    kernels::gather_rows_rounded(on(), rows, width, ids, x, y, rounded);
    expect_written("each: gather_rows_rounded", 1.5 * all);
    const kernels::Dropout dropout{.p = 0.3f, .key = 1, .stream = 2, .map = {rows, rows}};
    kernels::dropout_rounded(on(), rows, width, dropout, x, y, rounded);
    expect_written("each: dropout_rounded", 1.5 * all);
    release();
  }
}

struct BeamSizes {
  std::int64_t rows, k, parts;
};
constexpr std::int32_t slots = 4, best_token = 7;

class LargeBeamStep : public LargeShapes {
 protected:
  template <class T>
  void set(T* at, const T& value) {
    device->to_device(at, &value, sizeof value);
  }
  template <class T>
  std::vector<T> values(const T* at) {
    std::vector<T> found(slots);
    device->from_device(found.data(), at, slots * sizeof(T));
    return found;
  }

  // A step of one sentence, whose rows are the last ones. Its best extensions are those of each row
  // by one token, of probability 1.
  kernels::BeamStep step_of(const BeamSizes& sizes, const kernels::BeamSentence& sentence,
                            int period) {
    const std::int64_t rows = sizes.rows, first = rows - slots, lists = rows * sizes.parts;
    auto* const keys = make<std::uint64_t>(lists * sizes.k);
    float* const sums = make(2 * lists);
    constexpr std::uint64_t one = 0xBF800000;  // the number 1 in a key (key.h)
    for (std::int64_t row = first; row < rows; ++row) {
      set(keys + row * sizes.parts * sizes.k, one << 32 | (0xFFFFFFFFu - best_token));
      set(sums + 2 * row * sizes.parts, 1.0f);
      set(sums + 2 * row * sizes.parts + 1, 1.0f);
    }
    kernels::BeamStep step;
    step.beam = slots;
    step.sentences = 1;
    step.active = upload({0});
    step.from.first = step.to.first = upload({static_cast<std::int32_t>(first)});
    step.from.slots = step.to.slots = upload({slots});
    step.from.sums = make(rows);
    step.to.sums = make(rows);
    step.rows = rows;
    step.k = static_cast<int>(sizes.k);
    step.joined.lists = {sizes.parts, sizes.k, keys, sums};
    step.tokens = step.joined.tokens = make<std::int32_t>(rows * sizes.k);
    step.logits = step.joined.logits = make(rows * sizes.k);
    step.log_normalizers = step.joined.log_normalizers = make(rows);
    step.eos_stride = 64;
    step.eos_logits = make(rows * step.eos_stride);
    step.length_divisors = make<double>(sentence.longest + 2);
    step.state = make<kernels::BeamSentence>(1);
    set(step.state, sentence);
    step.parents = make<std::int32_t>(rows);
    step.next_tokens = make<std::int32_t>(rows);
    step.period = period;
    step.history = make<kernels::BeamNode>(period * rows);
    return step;
  }
};

// Many rows with lists of many parts, or many extensions of each row.
TEST_F(LargeBeamStep, WritesTheRowsOfASentence) {
  constexpr std::int32_t period = 64;
  for (const BeamSizes& sizes : {BeamSizes{40'000'000, 4, 32}, BeamSizes{100'000'000, 24, 1}}) {
    for (const bool closes : {false, true}) {  // whether hypotheses have the maximum length
      const kernels::BeamStep step = step_of(
          sizes, {.longest = closes ? period - 1 : period, .step = period - 1, .live = slots},
          period);
      kernels::beam_step(on(), step);
      device->synchronize();
      // Values and columns, the results and the history of each row; whole sectors.
      const double bytes = slots * static_cast<double>(8 * sizes.k + 4 + 3 * 4 + 12),
                   written = work("beam_step_kernel").written;
      EXPECT_GE(written, bytes);
      EXPECT_LE(written, bytes + 8 * 32);
      const auto first = static_cast<std::int32_t>(sizes.rows) - slots;
      const std::int32_t next = closes ? step.eos : best_token;
      EXPECT_EQ(values(step.parents + first),
                (std::vector{first, first + 1, first + 2, first + 3}));
      EXPECT_EQ(values(step.next_tokens + first), std::vector(slots, next));
      const auto nodes = values(step.history + (period - 1) * sizes.rows + first);
      for (const kernels::BeamNode& node : nodes) EXPECT_EQ(node.token, next);
      release();
    }
  }
}

}  // namespace
}  // namespace nmt::test
