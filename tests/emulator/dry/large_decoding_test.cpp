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

// The last sentence of a batch: of many rows, and of many extensions of each row.
TEST_F(LargeDecoding, BeamStep) {
  constexpr std::int32_t slots = 4, period = 64;
  for (const auto& [rows, k, parts] : {std::array<std::int64_t, 3>{40'000'000, 4, 32},
                                       std::array<std::int64_t, 3>{100'000'000, 24, 1}}) {
    for (const std::int32_t longest : {period - 1, period}) {  // closing or not
      kernels::BeamStep step;
      step.beam = slots;
      step.sentences = 1;
      step.active = upload({0});
      step.from.first = step.to.first = upload({static_cast<std::int32_t>(rows) - slots});
      step.from.slots = step.to.slots = upload({slots});
      step.from.sums = make(rows);
      step.to.sums = make(rows);
      step.rows = rows;
      step.k = static_cast<int>(k);
      step.joined.lists = {parts, k, make<std::uint64_t>(rows * parts * k), make(rows * parts * 2)};
      step.tokens = step.joined.tokens = make<std::int32_t>(rows * k);
      step.logits = step.joined.logits = make(rows * k);
      step.log_normalizers = step.joined.log_normalizers = make(rows);
      step.eos_stride = 64;
      step.eos_logits = make(rows * step.eos_stride);
      step.length_divisors = make<double>(period + 2);
      auto* const sentence = make<kernels::BeamSentence>(1);
      const kernels::BeamSentence before{.longest = longest, .step = period - 1, .live = slots};
      device->to_device(sentence, &before, sizeof before);
      step.state = sentence;
      step.parents = make<std::int32_t>(rows);
      step.next_tokens = make<std::int32_t>(rows);
      step.period = period;
      step.history = make<kernels::BeamNode>(period * rows);
      kernels::beam_step(on(), step);
      device->synchronize();
      // Values and columns, the results and the history of each row; whole sectors.
      const double bytes = slots * static_cast<double>(8 * k + 4 + 3 * 4 + 12);
      const double written = work("beam_step_kernel").written;
      EXPECT_GE(written, bytes);
      EXPECT_LE(written, bytes + 8 * 32);
      release();
    }
  }
}

}  // namespace
}  // namespace nmt::test
