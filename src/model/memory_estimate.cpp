#include "model/memory_estimate.h"

#include "kernels/attention/quantized_memory.h"
#include "model/encoder.h"

#include <algorithm>

namespace nmt {
namespace {

constexpr std::int64_t float_bytes = 4;

// Keys and values of a sentence, for all attentions of the decoder.
std::int64_t source_bytes(const ModelSpec& spec, const Inventory& inventory, std::int64_t tokens,
                          Dtype weights) {
  const std::int64_t width = inventory.memory_width, space = inventory.attention_space;
  if (weights != Dtype::i8 || spec.attention != AttentionType::dot)
    return float_bytes * tokens * (width + space);
  const std::int64_t attentions = architecture_of(spec).has_blocks() ? spec.dec_depth : 1;
  return attentions * kernels::quantized_memory_bytes(tokens, space / attentions,
                                                      width / attentions, spec.heads);
}

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
                               int target_vocabulary, const BatchSize& batch, int beam,
                               Dtype weights) {
  const UnitSettings settings = unit_settings(spec, spec.dec_cell);
  const std::int64_t rows = batch.sentences * beam;
  std::int64_t states = 0;  // floats
  for (int p = 0; p < settings.unit->states; ++p) states += settings.state_floats(p);
  // Convolutions keep their last inputs: E of the first layer, and of upper layers what is below
  // them and the context.
  const Architecture& architecture = architecture_of(spec);
  const bool reads_context =
      spec.upper_context && !spec.context_aware && !architecture.has_blocks();
  const std::int64_t upper_width = architecture.output_width(spec) +
                                   (reads_context && spec.attention != AttentionType::none
                                        ? inventory.memory_width
                                        : 0),
                     inputs = spec.dim_emb + (spec.dec_depth - 1) * upper_width,
                     convolved = std::max(spec.convolution - 1, 0) * inputs;
  const std::int64_t block =
      std::min(rows, std::max<std::int64_t>(32, spec.dim_emb / 8));  // model_scorer.cpp
  DecodingMemory memory;
  memory.weights = float_bytes * inventory.parameters();
  memory.source = batch.sentences * source_bytes(spec, inventory, batch.source_tokens, weights);
  memory.hypotheses =
      float_bytes * (rows * (2 * (spec.dec_depth * states + convolved) + spec.dim_emb) +
                     block * target_vocabulary);
  return memory;
}

}  // namespace nmt
