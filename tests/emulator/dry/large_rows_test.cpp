// Kernels with a thread for each element or for each row, with more than 2^31 elements.

#include "cuda/libraries/cudnn_order.h"
#include "dry/large.h"
#include "kernels/activation.h"
#include "kernels/label_loss.h"
#include "kernels/pointwise.h"
#include "kernels/products/gemm.h"
#include "kernels/products/gemm_batched.h"
#include "kernels/products/product_input.h"
#include "kernels/recurrent/convolution.h"
#include "kernels/recurrent/rearrange.h"
#include "kernels/self_attention.h"

#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace nmt::test {
namespace {

using kernels::Bfloat16;

class LargeRows : public LargeShapes {
 protected:
  // Calls without arguments that write so many bytes each, one after the other.
  struct Call {
    double bytes;
    std::function<void()> run;
  };
  void expect_bytes(const std::vector<Call>& calls) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      SCOPED_TRACE("call " + std::to_string(i));
      calls[i].run();
      expect_written("", calls[i].bytes);
    }
  }
  // Numbers from the last row to the first, as ids.
  const std::int32_t* rows_back(std::int64_t rows) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(rows));
    std::iota(ids.rbegin(), ids.rend(), 0);
    return upload(ids);
  }
};

TEST_F(LargeRows, Elements) {
  constexpr std::int64_t n = large + 5;
  constexpr double all = 4.0 * n;
  const float* const x = make(n);
  float *const y = make(n), *const z = make(n);
  const auto relu = kernels::Activation::relu;
  expect_bytes({
      {all, [&] { kernels::add_scaled(on(), n, 2.0f, x, y); }},
      {all, [&] { kernels::scale(on(), n, 2.0f, x, y); }},
      {all, [&] { kernels::add(on(), n, x, x, y); }},
      {all, [&] { kernels::tanh_forward(on(), n, x, y); }},
      {all, [&] { kernels::tanh_backward(on(), n, x, x, y); }},
      {all, [&] { kernels::gate_forward(on(), relu, n, x, x, y); }},
      {2 * all,
       [&] { kernels::gate_backward(on(), relu, n, x, x, {.dy = x, .dgate = y, .dx = z}); }},
  });
}

TEST_F(LargeRows, OfMatrices) {
  constexpr std::int64_t width = 4096, rows = large / width + 1, groups = 4;
  constexpr double all = 4.0 * rows * width;
  const float* const x = make(rows * width);
  float *const y = make(rows * width), *const sums = make(width);
  expect_bytes({
      {all, [&] { kernels::add_bias(on(), rows, width, x, x, y); }},
      {all, [&] { kernels::rearrange(on(), rows, groups, width, x, y); }},
      {all, [&] { kernels::rearrange_back(on(), rows, groups, width, x, true, y); }},
  });
  kernels::sum_rows(on(), rows, width, x, sums);
  EXPECT_NEAR(work("columns: sum_rows").read, all, 0.03 * all);
}

// Rows that are chosen by an id.
TEST_F(LargeRows, Chosen) {
  constexpr std::int64_t rows = 1 << 16;
  for (const Precision precision : {Precision::bfloat16, Precision::float32}) {
    start(precision);
    const std::int64_t width = precision == Precision::bfloat16 ? 41'000 : 41'001;
    const double all = 4.0 * static_cast<double>(rows * width);
    const std::int32_t* const ids = rows_back(rows);
    const float* const x = make(rows * width);
    float *const y = make(rows * width), *const picked = make(rows);
    expect_bytes({
        {all, [&] { kernels::gather_rows(on(), rows, width, ids, x, y); }},
        {all, [&] { kernels::add_to_rows(on(), rows, width, ids, x, y); }},
        {all, [&] { kernels::gather_packed(on(), rows, width, ids, x, y); }},
        {4.0 * rows, [&] { kernels::pick(on(), rows, width, x, ids, picked); }},
    });
    if (precision == Precision::float32) continue;
    kernels::gather_packed_rounded(on(), rows, width, ids, x, y, make<Bfloat16>(rows * width));
    expect_written("each: gather_packed_rounded", 1.5 * all);
  }
}

// Groups of planes that are packed.
TEST_F(LargeRows, PackedGroups) {
  constexpr kernels::BlockDiagonal w{4, 2, 18'400, 18'400, 2 * 18'400};
  constexpr std::int64_t n = w.groups * w.planes * w.k * w.n;
  static_assert(n > large);
  const float* const x = make(n);
  float* const packed = make(n);
  for (const bool back : {false, true}) {
    kernels::pack_batched(on(), back ? w.input_gradient() : w.product(), back, back ? w.n : w.k,
                          back ? w.k : w.n, x, w.ld, packed);
    expect_written("each: ", 2.0 * n);
  }
}

TEST_F(LargeRows, Rotate) {
  kernels::SelfAttention a;
  a.steps = 512;
  a.heads = 16;
  a.size = 64;
  a.sentences = large / (a.steps * 3 * a.heads * a.size) + 1;
  const std::int64_t n = a.steps * 3 * a.groups() * a.size;
  kernels::rotate(on(), a, make(a.steps * a.size), true, make(n), make(n));
  expect_written("each: rotate", 4.0 * static_cast<double>(n));
}

TEST_F(LargeRows, Convolution) {
  kernels::Convolution a;
  a.taps = 3;
  a.steps = 64;
  a.width = 4096;
  a.batch = large / (a.steps * a.width) + 1;
  const std::int64_t n = a.steps * a.batch * a.width;
  const double all = 4.0 * static_cast<double>(n);
  const float* const dy = make(n);
  float* const y = make(n);
  a.x = make(n);
  a.before = make(a.batch * (a.taps - 1) * a.width);
  a.weight = a.bias = dy;
  kernels::convolution_forward(on(), a, y);
  expect_written("each: convolution_forward", all);
  kernels::convolution_backward(on(), a, dy, y, make(a.taps * a.width), make(a.width));
  EXPECT_NEAR(dry->work().at("columns: convolution_backward").read, (2.0 * a.taps + 1) * all,
              0.1 * all);
  expect_written("each: convolution_backward", all);
}

// The inputs of the last steps of a batch, before those of the next one.
TEST_F(LargeRows, LastInputsOfAConvolution) {
  kernels::Convolution a;
  a.taps = 4;
  a.steps = 3;
  a.width = 256;
  a.batch = large / (a.steps * a.width) + 1;
  const std::int64_t n = a.steps * a.batch * a.width;
  a.x = a.before = make(n);
  kernels::convolution_last(on(), a, make(n));
  expect_written("each: convolution_last", 4.0 * static_cast<double>(n));
}

TEST_F(LargeRows, LabelLoss) {
  kernels::LabelLoss a;
  a.labels = 1024;
  a.rows = large / a.labels + 1;
  const std::int64_t n = a.rows * a.labels;
  a.logits = make(n);
  a.target = make<std::int32_t>(a.rows);
  a.smoothing = 0.1f;
  a.dlogits = make(n);
  a.cross_entropy = a.smoothed = make<double>(1);
  a.scratch = make<double>(2 * a.rows);
  kernels::label_loss(on(), a);
  expect_written("each: label_loss", static_cast<double>(4 * n + 16 * a.rows));
}

// Sentences of one word each: the scores of the words that follow are as many, and are not read.
TEST_F(LargeRows, Crf) {
  kernels::CrfLoss a;
  a.labels = 1000;
  a.sentences = 4000;
  a.steps = large / (a.labels * a.sentences) + 1;
  const std::int64_t cells = a.sentences * a.labels, n = a.steps * cells;
  a.emissions = make(n);
  a.transitions = make((a.labels + 2) * a.labels);
  a.target = make<std::int32_t>(a.steps * a.sentences);
  a.lengths = upload(std::vector<std::int32_t>(static_cast<std::size_t>(a.sentences), 1));
  a.demissions = make(n);
  a.dtransitions = make((a.labels + 2) * a.labels);
  a.cross_entropy = a.smoothed = make<double>(1);
  a.scratch = make<double>(kernels::crf_scratch(a.steps, a.sentences, a.labels));
  kernels::crf_loss(on(), a);
  expect_written("each: crf_loss",  // also both scores of the first words, and the transitions
                 static_cast<double>(4 * n + 16 * cells + 4 * (a.labels + 2) * a.labels));
}

// So many labels that the transitions have more than 2^31 elements.
TEST_F(LargeRows, TransitionsOfACrf) {
  kernels::CrfLoss a;
  a.labels = 52'000;
  a.sentences = a.steps = 1;
  const std::int64_t n = (a.labels + 2) * a.labels;
  ASSERT_GT(n, large);
  a.emissions = make(a.labels);
  a.transitions = make(n);
  a.target = upload({0});
  a.lengths = upload({1});
  a.demissions = make(a.labels);
  a.dtransitions = make(n);
  a.cross_entropy = a.smoothed = make<double>(1);
  a.scratch = make<double>(kernels::crf_scratch(a.steps, a.sentences, a.labels));
  kernels::crf_loss(on(), a);
  expect_written("each: crf_loss", 4.0 * static_cast<double>(n));
}

// Padding as cuDNN reads it: sentences of one step, and a matrix that is transposed.
TEST_F(LargeRows, OrderOfCudnn) {
  constexpr std::int64_t steps = 10, batch = 1 << 15, width = 8200, row = batch * width,
                         n = steps * row;
  static_assert(n > large);
  const cuda::Sentences s{steps, batch,
                          upload(std::vector<std::int32_t>(static_cast<std::size_t>(batch), 1))};
  const float* const x = make(n);
  float* const y = make(n);
  expect_bytes({
      {4.0 * n, [&] { cuda::turn(on(), s, width, x, x, y); }},
      {4.0 * (n - row), [&] { cuda::carry_last(on(), s, width, y); }},
      {4.0 * (n - row), [&] { cuda::clear_padding(on(), s, width, y); }},
      {4.0 * n, [&] { cuda::gather_padding(on(), s, width, y); }},
      {4.0 * row, [&] { cuda::add_padding(on(), s, width, x, y); }},
      {4.0 * n, [&] { cuda::copy_transposed(on(), batch, 10 * width, x, 10 * width, y, batch); }},
      {8.0 * n, [&] { cuda::add_transposed(on(), batch, 10 * width, x, 10 * width, y, batch); }},
  });
}

}  // namespace
}  // namespace nmt::test
