// Kernels with more than 2^31 elements: grids within CUDA's limits, and no index of 32 bits. The
// emulator refuses other grids and accesses outside of the arguments; an index that wraps within
// them shows in the bytes that are counted.

#include "dry/large.h"

#include "kernels/attention.h"
#include "kernels/layer_norm.h"
#include "kernels/optimizer.h"
#include "kernels/pointwise.h"
#include "kernels/products/gemm.h"
#include "kernels/products/gemm_batched.h"
#include "kernels/products/product_input.h"
#include "kernels/self_attention.h"
#include "kernels/softmax_loss.h"

#include <numeric>
#include <vector>

namespace nmt::test {
namespace {

TEST_F(LargeShapes, Each) {
  constexpr std::int64_t n = large + 5;
  kernels::fill(on(), make(n), n, 1.0f);
  expect_written("each: fill", 4.0 * n);
}

// The divisions of the index have 64 bits.
TEST_F(LargeShapes, EachOfRows) {
  constexpr std::int64_t width = 1027, rows = large / width + 1, n = rows * width;
  kernels::copy_columns(on(), rows, width, make(n), width, make(n + rows), width + 1, false);
  expect_written("each: copy_columns", 4.0 * n);
}

// Four columns of a number each; the last ones of a row are fewer.
TEST_F(LargeShapes, Gather) {
  for (const std::int64_t columns : {1024, 1027}) {
    const std::int64_t rows = large / columns + 1, stride = kernels::rounded_stride(columns);
    kernels::round_matrix(on(), rows, columns, make(rows * columns),
                          make<kernels::Bfloat16>(rows * stride));
    expect_written("each: gather",
                   2.0 * static_cast<double>(rows) * static_cast<double>((columns + 3) / 4 * 4));
  }
}

TEST_F(LargeShapes, LayerNorm) {
  for (const std::int64_t planes : {1, 4}) {
    constexpr std::int64_t width = 4096;
    const std::int64_t rows = large / (planes * width) + 1, n = rows * planes * width;
    const float* const gain = make(planes * width);
    float *const x = make(n), *const y = make(n), *const statistics = make(2 * rows * planes),
                 *const dgain = make(planes * width);
    auto *const rounded = make<kernels::Bfloat16>(n), *const dx = make<kernels::Bfloat16>(n);
    kernels::layer_norm(on(), rows, planes, width, x, gain, nullptr, y, statistics);
    expect_written("layer_norm_kernel", 4.0 * static_cast<double>(n));
    kernels::layer_norm_rounded(on(), rows, planes, width, rounded, gain, nullptr, dx, statistics);
    expect_written("layer_norm_kernel", 2.0 * static_cast<double>(n));
    const auto expect_gradients = [&](double bytes) {
      EXPECT_GT(work("layer_norm_backward_kernel").written, bytes * static_cast<double>(n));
    };
    kernels::layer_norm_backward(on(), rows, planes, width, y, x, statistics, gain, y, dgain,
                                 nullptr);
    expect_gradients(4);
    if (planes == 1) continue;
    kernels::layer_norm_backward_rounded(on(), rows, planes, width, y, x, statistics, gain, dx,
                                         dgain, nullptr);
    expect_gradients(2);
    kernels::layer_norm_backward_rounded(on(), rows, planes, width, rounded, rounded, statistics,
                                         gain, dx, dgain, nullptr);
    expect_gradients(2);
  }
}

TEST_F(LargeShapes, ScatterAddRows) {
  constexpr std::int64_t rows = 1 << 16, width = 41 * 1000;
  static_assert(rows * width > large);
  std::vector<std::int32_t> ids(rows);
  std::iota(ids.rbegin(), ids.rend(), 0);
  kernels::scatter_add_rows(on(), rows, width, rows, upload(ids), upload(kernels::id_runs(ids)),
                            make(rows * width), make(rows * width));
  device->synchronize();  // no fault
  expect_written("scatter_add_kernel", 4.0 * rows * width);
}

// The logits of a chunk of 2,048 rows.
TEST_F(LargeShapes, Softmax) {
  kernels::SoftmaxLoss loss;
  loss.rows = 2048;
  loss.width = 512;
  loss.vocabulary = 1311000 + 1;
  ASSERT_GT(loss.rows * loss.vocabulary, large);
  loss.x = make(loss.rows * loss.width);
  loss.table = make(loss.vocabulary * loss.width);
  loss.rounded_x = make<kernels::Bfloat16>(loss.rows * loss.width);
  loss.rounded_table = make<kernels::Bfloat16>(loss.vocabulary * loss.width);
  loss.bias = make(loss.vocabulary);
  loss.target = upload(std::vector<std::int32_t>(static_cast<std::size_t>(loss.rows),
                                                 static_cast<std::int32_t>(loss.vocabulary - 1)));
  loss.dx = make(loss.rows * loss.width);
  loss.dtable = make(loss.vocabulary * loss.width);
  loss.dbias = make(loss.vocabulary);
  loss.cross_entropy = make<double>(1);
  loss.smoothed = make<double>(1);
  loss.scratch = make(kernels::softmax_loss_scratch(on(), loss.rows, loss.width, loss.vocabulary));
  kernels::softmax_loss(on(), loss);
  device->synchronize();
  const double logits = static_cast<double>(loss.rows) * static_cast<double>(loss.vocabulary);
  expect_written("row_loss_kernel", 2.0 * logits);
  loss.dx = nullptr;  // evaluation: logits in float32, which are read once
  kernels::softmax_loss(on(), loss);
  EXPECT_NEAR(work("row_loss_kernel").read, 4.0 * logits, 0.04 * logits);
}

// The sentences are a prime number, so that blocks of late steps are among those that run.
TEST_F(LargeShapes, Attention) {
  constexpr std::int64_t target_steps = 512, sentences = 641, heads = 16, steps = 513, width = 1024,
                         queries = target_steps * sentences * width,
                         positions = steps * sentences * width,
                         weights_count = target_steps * sentences * heads * steps;
  static_assert(weights_count > large);
  kernels::Attention a;
  a.steps = steps;
  a.sentences = sentences;
  a.space = a.width = width;
  a.heads = heads;
  a.keys = make(positions);
  a.memory = make(positions);
  a.v = make(width);
  a.lengths = upload(std::vector<std::int32_t>(sentences, steps));
  kernels::AttentionGradient g;
  g.dcontext = make(queries);
  g.dquery = make(queries);
  g.dkeys = make(positions);
  g.dmemory = make(positions);
  g.dv = make(width);
  const float* const query = make(queries);
  float *const weights = make(weights_count), *const context = make(queries);
  for (const auto kind : {kernels::AttentionKind::additive, kernels::AttentionKind::dot}) {
    a.kind = kind;
    g.scratch = make(kernels::attention_scratch(on(), a, target_steps));
    kernels::attention_forward(on(), a, target_steps, sentences, nullptr, query, weights, context);
    expect_written("forward_kernel", 4.0 * (weights_count + queries));
    kernels::attention_backward(on(), a, target_steps, query, weights, g);
    expect_written("backward_queries_kernel", 4.0 * (weights_count + queries));
  }
}

// Keys, memory and queries with more than 2^31 elements each.
TEST_F(LargeShapes, AttentionOfManyKeys) {
  constexpr std::int64_t sentences = 1 << 17, heads = 4, steps = 8, width = 2688,
                         positions = steps * sentences * width;
  static_assert(positions > large);
  kernels::Attention a;
  a.kind = kernels::AttentionKind::additive;
  a.steps = steps;
  a.sentences = sentences;
  a.space = a.width = width;
  a.heads = heads;
  a.keys = a.memory = a.v = make(positions);
  a.lengths = upload(std::vector<std::int32_t>(sentences, steps));
  kernels::AttentionGradient g;
  g.dcontext = a.keys;
  g.dquery = make(positions);
  g.dkeys = make(positions);
  g.dmemory = make(positions);
  g.dv = make(width);
  for (const std::int64_t target_steps : {std::int64_t{1}, steps}) {
    const std::int64_t rows = target_steps * sentences, scores = rows * heads * steps;
    float *const weights = make(scores), *const context = make(positions);
    kernels::attention_forward(on(), a, target_steps, sentences, nullptr, a.keys, weights, context);
    expect_written("forward_kernel", 4.0 * static_cast<double>(rows * width + scores));
    g.scratch = make(kernels::attention_scratch(on(), a, target_steps));
    kernels::attention_backward(on(), a, target_steps, a.keys, weights, g);
    EXPECT_NEAR(dry->work().at("backward_keys_kernel<float>").written,
                4.0 * static_cast<double>(positions + sentences * width), 0.04 * 4.0 * positions);
    expect_written("backward_queries_kernel", 4.0 * static_cast<double>(rows * width + scores));
  }
}

// A link of each row.
TEST_F(LargeShapes, AttentionLinkCost) {
  constexpr std::int64_t rows = 1 << 17, heads = 16, steps = 1290;
  static_assert(rows * heads * steps > large);
  std::vector<std::int32_t> offsets(rows + 1);
  std::iota(offsets.begin(), offsets.end(), 0);
  kernels::AttentionLinks links;
  links.offsets = upload(offsets);
  links.sources = make<std::int32_t>(rows);
  links.head = heads - 1;
  kernels::attention_link_cost(on(), links, rows, heads, steps, make(rows * heads * steps),
                               make<double>(rows), make<double>(1));
  const double read = work("each: attention_link_cost").read;
  EXPECT_NEAR(read, 40.0 * rows, 2.0 * rows);  // a sector of weights, and 4 bytes of both arrays
}

TEST_F(LargeShapes, SelfAttention) {
  kernels::SelfAttention a;
  a.steps = 1024;
  a.sentences = 161;
  a.heads = 16;
  a.size = 64;
  const std::int64_t n = a.groups() * a.steps * a.steps;
  ASSERT_GT(n, large);
  a.lengths = upload(std::vector<std::int32_t>(161, 1024));
  float *const weights = make(n), *const gradient = make(n);
  kernels::self_attention_softmax(on(), a, weights);
  expect_written("self_attention_softmax_kernel", 4.0 * static_cast<double>(n));
  kernels::self_attention_softmax_backward(on(), a, weights, gradient);
  expect_written("self_attention_softmax_backward_kernel", 4.0 * static_cast<double>(n));
}

TEST_F(LargeShapes, Optimizer) {
  kernels::OptimizerSlice slice;
  slice.n = large + 5;
  slice.value = make(slice.n);
  slice.gradient = make(slice.n);
  slice.first = make(slice.n);
  slice.second = make(slice.n);
  slice.rounded = make<kernels::Bfloat16>(slice.n);
  kernels::AdamStep step;
  step.rate = 1;
  step.epsilon = 1;
  double* const squares = make<double>(1);
  kernels::gradient_norm_squared(on(), &slice, 1, squares);
  EXPECT_NEAR(work("squares_kernel").read, 4.0 * large, 0.04 * large);
  kernels::adam(on(), &slice, 1, step);
  expect_written("update_kernel", (4.0 * 4 + 2) * large);
  kernels::adadelta(on(), &slice, 1, {});
  expect_written("update_kernel", (4.0 * 4 + 2) * large);
  for (const auto rule : {0, 1}) {  // with one state
    rule == 0 ? kernels::adagrad(on(), &slice, 1, {}) : kernels::momentum(on(), &slice, 1, {});
    expect_written("update_kernel", (4.0 * 3 + 2) * large);
  }
  kernels::sgd(on(), &slice, 1, {});
  expect_written("update_kernel", (4.0 * 2 + 2) * large);
}

TEST_F(LargeShapes, ResidualNorm) {
  kernels::ResidualNorm a;
  a.width = 4096;
  a.rows = large / a.width + 1;
  const std::int64_t n = a.rows * a.width;
  float *const branch = make(n), *const y = make(n), *const sums = make(2 * a.width);
  a.x = make(n);
  a.branch = branch;
  a.gain = a.bias = make(a.width);
  a.sum = make(n);
  a.y = y;
  a.statistics = make(2 * a.rows);
  const kernels::Dropout dropout{.p = 0.3f, .key = 1, .stream = 2, .map = {a.rows, a.rows}};
  kernels::residual_norm(on(), a, dropout);
  expect_written("residual_norm_kernel", 8.0 * static_cast<double>(n));
  kernels::residual_norm_backward(
      on(), a, dropout,
      {.dy = y, .dx = y, .dbranch = branch, .dgain = sums, .dbias = sums + a.width});
  EXPECT_GT(work("layer_norm_backward_kernel").written, 8.0 * static_cast<double>(n));
}

TEST_F(LargeShapes, Dropout) {
  constexpr std::int64_t width = 1024, rows = large / width + 1, n = rows * width;
  float *const x = make(n), *const y = make(n);
  kernels::dropout(on(), rows, width, {}, 0.3f, 1, 2, x, y);
  expect_written("each: dropout", 4.0 * n);
  const kernels::RowMap part{.batch = rows, .step = 2 * rows, .first = rows};
  kernels::dropout(on(), rows, width, part, 0.3f, 1, 2, x, y);
  expect_written("each: dropout", 4.0 * n);
}

// A matrix that is packed, transposed or not.
TEST_F(LargeShapes, Pack) {
  constexpr std::int64_t k = 61'056, n = 45'001;
  static_assert(k * n > large);
  const float* const x = make(k * n);
  float* const packed = make(k * n);
  kernels::pack(on(), false, k, n, x, n, packed);
  expect_written("transpose_kernel", 2.0 * k * n);
  kernels::pack(on(), true, k, n, x, k, packed);
  expect_written("each: copy_matrix", 2.0 * k * n);
}

// The input is rounded, and the planes of the output are written apart.
TEST_F(LargeShapes, GemmBatched) {
  constexpr kernels::BlockDiagonal w{4, 2, 256, 128, 256};
  constexpr std::int64_t rows = large / (w.groups * w.k) + 1, in = w.groups * w.k,
                         out = w.groups * w.planes * w.n;
  kernels::gemm_batched(on(), w.product(), false, false, rows, w.n, w.k, make(rows * in), in,
                        make(in * w.ld), w.ld, 0.0f, make(rows * out), out);
  const auto done = dry->work();
  EXPECT_NEAR(done.at("each: gather").written, 2.0 * rows * in, 0.06 * rows * in);
  EXPECT_NEAR(done.at("each: scatter").written, 4.0 * rows * out, 0.12 * rows * out);
}

}  // namespace
}  // namespace nmt::test
