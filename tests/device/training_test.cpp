// Training on the CUDA device against the CPU: the same weights, batches and masks.

#include "nmt/model/model.h"
#include "nmt/tensor/copy.h"
#include "nmt/train/accumulator.h"
#include "nmt/train/optimizer.h"

#include <cmath>

#include "tests/device/machine.h"

namespace nmt::test {
namespace {

// With the usual epsilon of 1e-9 Adam makes whole steps of gradients that are rounding errors, of either sign.
TrainSpec adam() {
  TrainSpec spec;
  spec.optimizer_params = {0.9, 0.98, 1e-5};
  spec.optimizer = "adam";
  spec.clip_norm = 1;
  spec.exponential_smoothing = 0.01;
  return spec;
}

struct Training {
  Training(DeviceKind kind, const std::string& text)
      : machine(kind),
        model(small_model(text), source_size, target_size, machine.context, 7),
        optimizer(adam(), model.parameters(), machine.context),
        accumulator(
            model, optimizer.loss_sums(), [this] { optimizer.clear(); }, [this](const Batch&) { ++told; }) {}

  // The mean loss a token of one update.
  double update(int number, int sentences = 4) {
    const Batch batch = learnable_batch(static_cast<std::uint64_t>(number % 4), sentences, 5);
    const auto pass = static_cast<std::uint64_t>(number);
    const std::int64_t tokens = accumulator.add({{batch, {0.1f, 3, pass}}});
    const train::UpdateResult result = optimizer.update(0.005, tokens);
    EXPECT_TRUE(result.applied);
    return result.smoothed / static_cast<double>(tokens);
  }
  std::vector<float> weights() {
    std::vector<float> all;
    for (const Parameter& p : model.parameters().all()) {
      const std::vector<float> values = download<float>(machine.context, p.value);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  Machine machine;
  Model model;
  train::Optimizer optimizer;
  train::Accumulator accumulator;
  int told = 0;
};

class TrainingOnDevice : public DeviceTest, public testing::WithParamInterface<const char*> {};

// The bound of docs/gpu.md: the loss of each of 20 updates within 1e-3 of the CPU's, relatively.
TEST_P(TrainingOnDevice, TwentyUpdatesAgreeWithTheCpu) {
  Training cpu(DeviceKind::cpu, GetParam()), cuda(DeviceKind::cuda, GetParam());
  double first = 0, last = 0;
  std::int64_t waits = 0, taken = 0;
  for (int i = 0; i < 20; ++i) {
    const double expected = cpu.update(i), found = cuda.update(i);
    EXPECT_NEAR(found, expected, 1e-3 * expected) << "update " << i;
    (i == 0 ? first : last) = found;
    // A steady step waits once, for the norm and the loss, and asks for no memory.
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

INSTANTIATE_TEST_SUITE_P(Models, TrainingOnDevice,
                         testing::Values("rnnsearch gru", "rnnsearch lstm norm tied", "rnnsearch lrn variational",
                                         "deep olrn norm", "deep gru groups", "deep sru aware dot",
                                         "deep atr first-layer norm", "seq2seq elstm2", "seq2seq gru none",
                                         "gnmt lstm"),
                         name_of_row);

class DeviceMemory : public DeviceTest {};

TEST_F(DeviceMemory, ABatchThatDoesNotFitIsCutAndSumsToTheWhole) {
  Training whole(DeviceKind::cuda, "seq2seq gru none"), parts(DeviceKind::cuda, "seq2seq gru none");
  for (Training* t : {&whole, &parts}) t->update(0, 2);
  parts.machine.arena->trim();
  const std::size_t resident = parts.machine.arena->statistics().reserved;
  whole.update(1, 40);
  parts.machine.most = resident + (whole.machine.arena->statistics().reserved - resident) / 2;
  parts.update(1, 40);
  EXPECT_EQ(whole.told, 0);
  EXPECT_EQ(parts.told, 1);
  // Dropout draws other masks in the second half, so only the sizes are alike.
  const std::vector<float> a = whole.weights(), b = parts.weights();
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 0.05) << i;
}

TEST_F(DeviceMemory, WhatIsAskedForAndFreeIsSaid) {
  Training training(DeviceKind::cuda, "seq2seq gru none");
  training.machine.arena->trim();
  training.machine.most = 0;
  try {
    training.update(0, 1);
    FAIL() << "no error";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.status(), ExitStatus::memory);
    for (const char* part : {"single pair", "MB asked for", "MB free", "--mini-batch-words"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace nmt::test
