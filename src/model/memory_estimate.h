#pragma once

#include "config/specs.h"
#include "model/inventory.h"
#include "tensor/tensor.h"

#include <cstdint>

namespace nmt {

/// The size of one batch.
struct BatchSize {
  std::int64_t sentences = 0;
  std::int64_t source_tokens = 0, target_tokens = 0;  ///< of a sentence, padding included
};

/// Bytes of tensors in one training update.
struct TrainingMemory {
  std::int64_t weights = 0, gradients = 0, optimizer = 0, average = 0;
  /// Estimate of the activations saved for the backward pass and its scratch.
  std::int64_t activations = 0;
  std::int64_t total() const { return weights + gradients + optimizer + average + activations; }
};
/// `optimizer_states`: optimizer state values per weight; `average`: whether there is a moving
/// average.
TrainingMemory training_memory(const Model& model, const Inventory& inventory,
                               const BatchSize& batch, int optimizer_states, bool average);

/// Bytes of tensors while a batch is translated.
struct DecodingMemory {
  std::int64_t weights = 0;
  std::int64_t source = 0;  ///< annotations and keys
  /// States before and after a step, and scores of a block of hypotheses.
  std::int64_t hypotheses = 0;
  std::int64_t total() const { return weights + source + hypotheses; }
};
/// `weights`: the type in which the model decodes; dot-product attention then keeps its keys and
/// values in int8 too.
DecodingMemory decoding_memory(const ModelSpec& spec, const Inventory& inventory,
                               int target_vocabulary, const BatchSize& batch, int beam,
                               Dtype weights);

}  // namespace nmt
