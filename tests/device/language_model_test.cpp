#include "tasks/language_model/language_model.h"

#include "tensor/copy.h"
#include "tests/device/machine.h"
#include "train/optimization/optimizer.h"

#include <cmath>

namespace nmt::test {
namespace {

constexpr int streams = 4, steps = 5, windows = 4;

ModelSpec language_model(const char* unit) {
  ModelSpec spec;
  spec.task = Task::language_model;
  spec.dec_cell = unit;
  spec.dim_emb = 12;
  spec.dim_rnn = 10;
  spec.dec_depth = 2;
  spec.layer_normalization = false;
  spec.dropout_emb = spec.dropout_rnn = spec.dropout_readout = spec.dropout_state = 0.1;
  spec.language_model.dropout_weights = 0.2;
  spec.language_model.output = OutputLayer::tanh;
  return spec;
}

Batch window(int number) {
  Rng rng(5);
  std::vector<std::int32_t> ids;
  for (int i = 0; i < streams * (steps * windows + 1); ++i)
    ids.push_back(static_cast<std::int32_t>(rng.below(target_size)));
  Batch batch;
  batch.sentences = batch.slice.whole = streams;
  batch.target_steps = steps;
  batch.target_tokens = streams * steps;
  batch.first_step = number % windows * steps;
  batch.target_mask.assign(streams * steps, 1.0f);
  for (int t = 0; t < steps; ++t)
    for (int b = 0; b < streams; ++b) {
      const auto at = static_cast<std::size_t>(b * (steps * windows + 1) + t) +
                      static_cast<std::size_t>(batch.first_step);
      batch.target_in.push_back(ids[at]);
      batch.target_out.push_back(ids[at + 1]);
    }
  return batch;
}

TrainSpec sgd() {
  TrainSpec spec;
  spec.optimizer = UpdateRule::sgd;
  spec.average_after = 1;
  return spec;
}

struct Training {
  Training(DeviceKind kind, const char* unit)
      : machine(kind),
        model(language_model(unit), target_size, machine.context, 7, streams),
        optimizer(sgd(), model.parameters(), machine.context) {}

  double update(int number) {
    const Batch batch = window(number);
    model.begin_update();
    model.accumulate_gradients(batch, {0, 3, static_cast<std::uint64_t>(number)},
                               optimizer.loss_sums());
    return optimizer.update(1, batch.target_tokens).cross_entropy;
  }

  Machine machine;
  LanguageModel model;
  train::Optimizer optimizer;
};

// The bound of docs/design/cuda-testing.md, over two epochs of segments with carried states; then
// the scores.
TEST_F(NeedsCuda, LanguageModelsAgreeWithTheCpu) {
  for (const char* unit : {"lstm", "lrn", "gru"}) {
    Training cpu(DeviceKind::cpu, unit), cuda(DeviceKind::cuda, unit);
    for (int i = 0; i < 2 * windows; ++i) {
      const double expected = cpu.update(i);
      EXPECT_NEAR(cuda.update(i), expected, 1e-3 * expected) << unit << " update " << i;
    }
    LanguageModelState states[2];
    cpu.model.freeze();
    cuda.model.freeze();
    for (int i = 0; i < 2; ++i) {
      const std::vector<double> expected = cpu.model.log_probabilities(window(i), states[0]),
                                found = cuda.model.log_probabilities(window(i), states[1]);
      for (std::size_t k = 0; k < expected.size(); ++k)
        EXPECT_NEAR(found[k], expected[k], 1e-3 * std::abs(expected[k])) << unit;
    }
  }
}

}  // namespace
}  // namespace nmt::test
