#include "model/memory_estimate.h"

#include "model/encoder.h"

#include <algorithm>

namespace nmt {
namespace {

constexpr std::int64_t float_bytes = 4;

}  // namespace

TrainingMemory training_memory(const Model& model, const Inventory& inventory,
                               const BatchSize& batch, int optimizer_states, bool average) {
  TrainingMemory memory;
  memory.weights = memory.gradients = float_bytes * inventory.parameters();
  memory.optimizer = optimizer_states * memory.weights;
  memory.average = average ? memory.weights : 0;
  memory.activations =
      float_bytes * model.saved_floats(batch.sentences, batch.source_tokens, batch.target_tokens);
  return memory;
}

DecodingMemory decoding_memory(const ModelSpec& spec, const Inventory& inventory,
                               int target_vocabulary, const BatchSize& batch, int beam) {
  const std::int64_t rows = batch.sentences * beam,
                     states = unit_settings(spec, spec.dec_cell).unit->states;
  const std::int64_t block =
      std::min(rows, std::max<std::int64_t>(32, spec.dim_emb / 8));  // model_scorer.cpp
  DecodingMemory memory;
  memory.weights = float_bytes * inventory.parameters();
  memory.source = float_bytes * batch.sentences * batch.source_tokens *
                  (inventory.memory_width + inventory.attention_space);
  memory.hypotheses =
      float_bytes * (rows * (2 * spec.dec_depth * states * spec.dim_rnn + spec.dim_emb) +
                     block * target_vocabulary);
  return memory;
}

}  // namespace nmt
