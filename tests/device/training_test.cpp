// Training on the CUDA device against the CPU: the same weights, batches and masks.

#include "model/model.h"
#include "tensor/copy.h"
#include "tests/device/machine.h"
#include "train/optimization/accumulator.h"
#include "train/optimization/optimizer.h"

#include <cmath>
#include <span>
#include <string_view>

namespace nmt::test {
namespace {

// The address sanitizer watches memory, whose use is steady from the ninth update on.
#if defined(__SANITIZE_ADDRESS__)
constexpr int several_updates = 9;
#else
constexpr int several_updates = 20;
#endif

// With the default epsilon of 1e-9 Adam makes full steps for gradients that are rounding errors of
// either sign.
TrainSpec adam() {
  TrainSpec spec;
  spec.optimizer_params = {0.9, 0.98, 1e-5};
  spec.optimizer = UpdateRule::adam;
  spec.clip_norm = 1;
  spec.exponential_smoothing = 0.01;
  return spec;
}

struct Training {
  Training(DeviceKind kind, const std::string& text, Precision precision = Precision::float32)
      : alignment_weight(text.find("guided") == text.npos ? 0.0f : 0.5f),
        machine(kind, text, precision),
        model(small_model(text), source_size, target_size, machine.context, 7),
        optimizer(adam(), model.parameters(), machine.context),
        accumulator(
            model, optimizer.loss_sums(), [this] { optimizer.clear(); },
            [this](const Batch&) { ++told; }) {}

  // The mean loss per token of one update.
  double update(int number, int sentences = 4, int length = 5) {
    const Batch batch = learnable_batch(static_cast<std::uint64_t>(number % 4), sentences, length);
    const auto pass = static_cast<std::uint64_t>(number);
    const std::int64_t tokens = accumulator.add({{batch, {0.1f, 3, pass, alignment_weight}}});
    const train::UpdateResult result = optimizer.update(0.005, tokens);
    EXPECT_TRUE(result.applied);
    EXPECT_EQ(result.alignment > 0, alignment_weight > 0);
    alignment = result.alignment / static_cast<double>(tokens);
    return result.smoothed / static_cast<double>(tokens) + alignment_weight * alignment;
  }
  std::vector<float> weights() { return weights_of(machine.context, model); }

  float alignment_weight;
  double alignment = 0;  // cost of the last update, per token
  Machine machine;
  Model model;
  train::Optimizer optimizer;
  train::Accumulator accumulator;
  int told = 0;
};

class TrainingOnDevice : public ModelOnDevice {};

// The bound of docs/design/cuda-testing.md: the loss of each update within 1e-3 of the CPU's,
// relatively.
TEST_P(TrainingOnDevice, UpdatesAgreeWithTheCpu) {
  Training cpu(DeviceKind::cpu, GetParam()), cuda(DeviceKind::cuda, GetParam());
  EXPECT_EQ(cpu.weights(), cuda.weights());
  double first = 0, last = 0;
  std::int64_t waits = 0, taken = 0;
  for (int i = 0; i < several_updates; ++i) {
    const double expected = cpu.update(i), found = cuda.update(i);
    EXPECT_NEAR(found, expected, 1e-3 * expected) << "update " << i;
    EXPECT_NEAR(cuda.alignment, cpu.alignment, 1e-3 * cpu.alignment) << "update " << i;
    (i == 0 ? first : last) = found;
    // A steady step waits once, for the norm and the loss, and allocates no memory.
    const std::int64_t waited = cuda.machine.device->waits();
    const std::int64_t allocated = cuda.machine.arena->statistics().system_allocations;
    if (i >= 8) {
      EXPECT_EQ(waited - waits, 1) << "update " << i;
      EXPECT_EQ(allocated, taken) << "update " << i;
    }
    waits = waited;
    taken = allocated;
  }
  EXPECT_LT(last, first);
  const Batch batch = learnable_batch(9, 4, 6);
  const double expected = cpu.model.evaluate(batch).cross_entropy;
  EXPECT_NEAR(cuda.model.evaluate(batch).cross_entropy, expected, 1e-3 * expected);
}

INSTANTIATE_TEST_SUITE_P(
    Models, TrainingOnDevice,
    testing::Values("rnnsearch gru", "rnnsearch lstm norm tied", "rnnsearch lrn variational chrono",
                    "deep olrn norm", "deep gru groups", "deep sru aware dot",
                    "deep atr first-layer norm", "seq2seq elstm2", "seq2seq gru none", "gnmt lstm",
                    "block ssru self-attention", "rnnsearch lstm cudnn",
                    "deep gru after bias tied cudnn", "seq2seq gru after none cudnn",
                    "gnmt lstm bias first-layer cudnn", "rnnsearch gru norm persistent",
                    "gnmt lstm variational persistent", "seq2seq ran none blocks persistent",
                    "rnnsearch atr norm blocks persistent", "rnnsearch gru heads dot eights guided",
                    "block ssru self-attention guided"),
    name_of_row);

class PassesOnDevice : public ModelOnDevice {};

// Two passes of one shape in every update: the first overwrites old gradients, which are
// not-a-numbers here, and the second adds, each with a graph of its own.
TEST_P(PassesOnDevice, OldGradientsAreOverwrittenAndNewOnesAddUp) {
  Training cpu(DeviceKind::cpu, GetParam()), cuda(DeviceKind::cuda, GetParam());
  std::int64_t old = 0;
  for (int i = 0; i < 4; ++i) {
    double losses[2], norms[2];
    for (Training* each : {&cpu, &cuda}) {
      std::vector<train::Accumulator::Piece> pieces;
      for (const int part : {0, 1})
        pieces.push_back(
            {learnable_batch(static_cast<std::uint64_t>(2 * i + part), 4, 5),
             {0.1f, 3, static_cast<std::uint64_t>(2 * i + part), each->alignment_weight}});
      const std::int64_t tokens = each->accumulator.add(std::move(pieces));
      const train::UpdateResult result = each->optimizer.update(0.005, tokens);
      losses[each == &cuda] = result.smoothed;
      norms[each == &cuda] = result.gradient_norm;
      for (Parameter& p : each->model.parameters().all()) {
        if (!p.gradient_is_old) continue;
        ++old;
        const std::vector<float> nan(static_cast<std::size_t>(p.shape.elements()), NAN);
        upload(each->machine.context, std::span<const float>(nan), p.gradient);
      }
    }
    EXPECT_NEAR(losses[1], losses[0], 1e-3 * losses[0]) << "update " << i;
    EXPECT_NEAR(norms[1], norms[0], 5e-3 * norms[0]) << "update " << i;
  }
  EXPECT_GT(old, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, PassesOnDevice,
                         testing::Values("rnnsearch lstm norm tied", "deep gru groups",
                                         "deep olrn norm aware eights",
                                         "deep gru after bias tied cudnn",
                                         "rnnsearch gru norm persistent"),
                         name_of_row);

class PrecisionOnDevice : public ModelOnDevice {};

// The bound of docs/design/cuda-testing.md: a product's inputs are rounded to 8 (bfloat16) or 11
// bits (tf32), so that a term of it is wrong by 2^-7 or 2^-10 at most; the loss of each update
// stays within twice as much of the CPU's in float32.
TEST_P(PrecisionOnDevice, UpdatesStayNearFloat32) {
  Training exact(DeviceKind::cpu, GetParam()), tf32(DeviceKind::cuda, GetParam(), Precision::tf32),
      bfloat16(DeviceKind::cuda, GetParam(), Precision::bfloat16);
  double first = 0, last = 0, off = 0;
  for (int i = 0; i < several_updates; ++i) {
    const double expected = exact.update(i), in_tf32 = tf32.update(i),
                 in_bfloat16 = bfloat16.update(i);
    EXPECT_NEAR(in_tf32, expected, 0x1p-9 * expected) << "update " << i;
    EXPECT_NEAR(in_bfloat16, expected, 0x1p-6 * expected) << "update " << i;
    off += std::abs(in_bfloat16 - in_tf32);
    (i == 0 ? first : last) = in_bfloat16;
  }
  EXPECT_LT(last, first);
  EXPECT_GT(off, 0);  // the products differ
}

INSTANTIATE_TEST_SUITE_P(Models, PrecisionOnDevice,
                         testing::Values("rnnsearch gru", "deep olrn norm", "deep gru groups",
                                         "seq2seq lstm none", "deep olrn norm aware eights",
                                         "deep sru aware eights", "rnnsearch gru after eights"),
                         name_of_row);

// Gradients by parameter. Rounding moves them by up to 9 % where rows of 16 numbers are normalized;
// a product that reads another row or step moves those of several parameters by more than 12 %.
class Bfloat16OnDevice : public ModelOnDevice {};

TEST_P(Bfloat16OnDevice, GradientsStayNearFloat32) {
  Training exact(DeviceKind::cuda, GetParam()),
      bfloat16(DeviceKind::cuda, GetParam(), Precision::bfloat16);
  for (Training* training : {&exact, &bfloat16})
    training->accumulator.add(
        {{learnable_batch(3, 6, 7), {0.1f, 3, 1, training->alignment_weight}}});
  for (const Parameter& p : exact.model.parameters().all()) {
    const std::vector<float> expected = download<float>(exact.machine.context, p.gradient),
                             found = download<float>(
                                 bfloat16.machine.context,
                                 bfloat16.model.parameters().find(p.name)->gradient);
    double squares = 0, difference = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      squares += std::pow(expected[i], 2);
      difference += std::pow(found[i] - expected[i], 2);
    }
    EXPECT_LE(std::sqrt(difference), 0.12 * std::sqrt(squares)) << p.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Bfloat16OnDevice,
    testing::Values("deep olrn norm aware eights", "deep sru aware eights",
                    "rnnsearch gru after eights", "rnnsearch gru after norm eights",
                    "rnnsearch lstm norm heads dot eights",
                    "rnnsearch lstm norm heads dot eights guided", "deep atr aware eights",
                    "deep gru aware", "deep atr aware", "deep lrn bias heads eights",
                    "rnnsearch gru norm eights persistent", "gnmt lstm persistent",
                    "seq2seq rnn none blocks persistent"),
    name_of_row);

// Half precision covers 6e-8 to 65504. Embeddings scaled by 2^40 and read by weights scaled by
// 2^-40 make the same model: in bfloat16 its loss and its gradients are the same bits except for
// these factors.
TEST_F(NeedsCuda, NumbersBeyondHalfPrecisionTrainAlikeInBfloat16) {
  constexpr int power = 40;
  Training usual(DeviceKind::cuda, "rnnsearch gru", Precision::bfloat16),
      large(DeviceKind::cuda, "rnnsearch gru", Precision::bfloat16);
  const auto factor_of = [](const Parameter& p) {
    if (p.name == "encoder.embedding") return power;
    return p.name.starts_with("encoder.") && p.name.ends_with(".input_projection") ? -power : 0;
  };
  int scaled = 0;
  for (const Parameter& p : large.model.parameters().all()) {
    if (factor_of(p) == 0) continue;
    ++scaled;
    std::vector<float> values = download<float>(large.machine.context, p.value);
    for (float& v : values) v = std::ldexp(v, factor_of(p));
    upload(large.machine.context, std::span<const float>(values), p.value);
  }
  EXPECT_EQ(scaled, 3);  // including the matrices of both directions
  const Batch batch = learnable_batch(1, 4, 5);
  const TrainPass pass{0.1f, 3, 1};
  EXPECT_EQ(usual.model.accumulate_gradients(batch, pass).smoothed,
            large.model.accumulate_gradients(batch, pass).smoothed);
  for (const Parameter& p : usual.model.parameters().all()) {
    const std::vector<float> a = download<float>(usual.machine.context, p.gradient),
                             b = download<float>(large.machine.context,
                                                 large.model.parameters().find(p.name)->gradient);
    for (std::size_t i = 0; i < a.size(); ++i)
      ASSERT_EQ(std::ldexp(a[i], -factor_of(p)), b[i]) << p.name << " " << i;
  }
}

// The device adds sentences and steps to these batches (data/round_shape.h).
TEST_P(TrainingOnDevice, MorePaddingAgreesWithTheCpu) {
  Training cpu(DeviceKind::cpu, GetParam()), cuda(DeviceKind::cuda, GetParam());
  for (const auto& [sentences, length] : {std::pair{19, 8}, {17, 9}, {35, 7}}) {
    const double expected = cpu.update(sentences, sentences, length);
    EXPECT_NEAR(cuda.update(sentences, sentences, length), expected, 1e-5 * expected) << sentences;
  }
}

// The same kernels in the same order, launched one by one or as a graph.
TEST_P(TrainingOnDevice, GraphsChangeNoBit) {
  Training plain(DeviceKind::cuda, GetParam()), graphs(DeviceKind::cuda, GetParam());
  plain.machine.device->set_graphs(false);
  const int updates = std::string_view(GetParam()) == "rnnsearch gru" ? several_updates : 8;
  for (int i = 0; i < updates; ++i) {
    const int number = 4 * i + i % 2;  // of two batches
    ASSERT_EQ(plain.update(number), graphs.update(number)) << "update " << i;
  }
  EXPECT_EQ(plain.weights(), graphs.weights());
  const GraphCounts counts = graphs.machine.device->graph_counts();
  EXPECT_EQ(plain.machine.device->graph_counts().recorded, 0);
  if (wants_cudnn(GetParam())) {
    EXPECT_EQ(counts.recorded, 2);  // the two parts of an update, but no pass
    return;
  }
  // Each batch runs call by call, then is captured, then replayed, unless the arena still grows.
  EXPECT_GE(counts.replayed, updates - 6 + 2 * (updates - 2));
  EXPECT_LE(counts.misfits, 2);
}

// In bfloat16 the two directions of an encoder read one rounded input, on branches of a graph.
TEST_F(NeedsCuda, GraphsChangeNoBitInBfloat16) {
  for (const char* text : {"rnnsearch gru", "deep olrn norm", "rnnsearch gla groups first-layer",
                           "rnnsearch gru eights", "deep olrn norm aware eights",
                           "rnnsearch gru norm eights persistent"}) {
    Training plain(DeviceKind::cuda, text, Precision::bfloat16),
        graphs(DeviceKind::cuda, text, Precision::bfloat16);
    plain.machine.device->set_graphs(false);
    for (int i = 0; i < 6; ++i) ASSERT_EQ(plain.update(0), graphs.update(0)) << text << ", " << i;
    EXPECT_EQ(plain.weights(), graphs.weights()) << text;
    EXPECT_GE(graphs.machine.device->graph_counts().replayed, 2) << text;
  }
}

// The update is queued before the host reads the norm, so the device decides; plainly in the first
// update, captured in the second, and replayed from the third on.
TEST_F(NeedsCuda, AnUpdateThatIsNotFiniteChangesNothing) {
  Training training(DeviceKind::cuda, "rnnsearch gru");
  const Tensor row = training.model.parameters().all().front().gradient.slice(0, 1);
  const std::vector<float> nan(static_cast<std::size_t>(row.elements()), NAN);
  for (int i = 0; i < 6; ++i) {
    const std::vector<float> before = training.weights();
    const std::int64_t steps = training.optimizer.steps();
    const Batch batch = learnable_batch(1, 4, 5);
    const std::int64_t tokens =
        training.accumulator.add({{batch, {0.1f, 3, static_cast<std::uint64_t>(i)}}});
    const bool bad = i % 2 == 1;
    if (bad) upload(training.machine.context, std::span<const float>(nan), row);
    const train::UpdateResult result = training.optimizer.update(0.005, tokens);
    EXPECT_EQ(result.applied, !bad) << "update " << i;
    EXPECT_TRUE(std::isfinite(result.smoothed) && result.smoothed > 0) << "update " << i;
    EXPECT_EQ(training.optimizer.steps(), steps + (bad ? 0 : 1)) << "update " << i;
    EXPECT_EQ(training.weights() == before, bad) << "update " << i;
    for (const Parameter& p : training.model.parameters().all()) {
      if (p.gradient_is_old) continue;  // the next pass overwrites it
      for (const float g : download<float>(training.machine.context, p.gradient))
        ASSERT_EQ(g, 0.0f) << p.name << " after update " << i;
    }
  }
  EXPECT_GE(training.machine.device->graph_counts().replayed, 6);
}

class DeviceMemory : public NeedsCuda {};

TEST_F(DeviceMemory, ABatchThatDoesNotFitIsCutAndSumsToTheWhole) {
  Training whole(DeviceKind::cuda, "seq2seq gru none"), parts(DeviceKind::cuda, "seq2seq gru none");
  for (Training* t : {&whole, &parts}) t->update(0, 2);
  parts.machine.arena->trim();
  const std::size_t resident = parts.machine.arena->statistics().reserved;
  whole.update(1, 40);
  parts.machine.max_bytes = resident + (whole.machine.arena->statistics().reserved - resident) / 2;
  parts.update(1, 40);
  EXPECT_EQ(whole.told, 0);
  EXPECT_EQ(parts.told, 1);
  const std::vector<float> a = whole.weights(), b = parts.weights();
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-4) << i;
}

TEST_F(DeviceMemory, ABatchThatDoesNotFitWhileItIsCapturedIsCut) {
  Training plain(DeviceKind::cuda, "seq2seq gru none"),
      graphs(DeviceKind::cuda, "seq2seq gru none");
  plain.machine.device->set_graphs(false);
  for (Training* t : {&plain, &graphs}) {
    t->update(0, 2);
    t->machine.arena->trim();
    const std::size_t resident = t->machine.arena->statistics().reserved;
    t->update(1, 40);
    const std::size_t needed = t->machine.arena->statistics().reserved;
    t->machine.arena->trim();
    t->machine.max_bytes = resident + (needed - resident) / 2;
    for (int i = 0; i < 4; ++i) t->update(1, 40);
    EXPECT_EQ(t->told, 1);
  }
  EXPECT_EQ(plain.weights(), graphs.weights());
  EXPECT_GT(graphs.machine.device->graph_counts().replayed, 0);
}

TEST_F(DeviceMemory, WhatIsAskedForAndFreeIsSaid) {
  Training training(DeviceKind::cuda, "seq2seq gru none");
  training.machine.arena->trim();
  training.machine.max_bytes = 0;
  try {
    training.update(0, 1);
    FAIL() << "no error";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.status(), ExitStatus::memory);
    for (const char* part : {"single pair", "MB requested", "MB free", "lower max-length"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace nmt::test
