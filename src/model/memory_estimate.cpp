#include "model/memory_estimate.h"

#include "kernels/softmax_loss.h"
#include "model/check.h"
#include "model/encoder.h"

#include <algorithm>

namespace nmt {
namespace {

constexpr std::int64_t float_bytes = 4;

// Floats of a position that stay until the backward pass, as the ops in src/autograd keep them.
class Kept {
 public:
  explicit Kept(const ModelSpec& spec) : spec_(spec), e_(spec.dim_emb), h_(spec.dim_rnn) {}

  // Projections of `input` channels, states, and the record of products with the state;
  // normalization keeps its input, its output and the normal. What matrices read rearranged is kept
  // so too.
  std::int64_t unit(const kernels::Unit& u, std::int64_t input) const {
    const std::int64_t inside = u.recurrents + u.late;
    return h_ * (u.inputs * (normal() ? 3 : 1) + u.states + inside * (normal() ? 2 : 1) +
                 (u.late > 0 ? 1 : 0)) +
           rearranged(input + (u.recurrents > 0 ? h_ : 0));
  }
  // The second unit of a conditional step: its projection is inside the loop.
  std::int64_t higher(const kernels::Unit& u, std::int64_t context) const {
    return unit(u, context) - (normal() ? u.inputs * h_ : 0);
  }
  std::int64_t rearranged(std::int64_t width) const {
    return spec_.groups > 1 && spec_.rearrange ? width : 0;
  }
  std::int64_t residual() const {
    return e_ * ((spec_.dropout_rnn > 0 ? 3 : 2) + (normal() ? 2 : 0));
  }
  std::int64_t dropped(double p, std::int64_t width) const { return p > 0 ? width : 0; }
  bool normal() const { return spec_.layer_normalization; }

  std::int64_t source(const Inventory& inventory) const {
    const kernels::Unit& u = *unit_settings(spec_, spec_.enc_cell).unit;
    const bool deep = spec_.type == "deep";
    std::int64_t sum = e_ + dropped(spec_.dropout_emb, e_) + 2 * unit(u, e_) +
                       (spec_.context_aware ? unit(u, h_) : 0);
    std::int64_t width = spec_.context_aware ? h_ : 2 * h_;
    if (!spec_.context_aware) sum += width;
    if (deep) sum += residual();
    for (int layer = 1; layer < spec_.enc_depth; ++layer) {
      sum += unit(u, deep ? e_ : width) + (deep ? residual() : dropped(spec_.dropout_rnn, width));
      if (spec_.type == "gnmt" && layer >= 2) sum += h_;
      width = h_;
    }
    if (!deep && spec_.type != "gnmt") sum += dropped(spec_.dropout_rnn, width);
    const int keys = spec_.attention == "additive"
                         ? 2
                         : 1;  // additive attention's exponentials (attention_exp_keys)
    return sum + keys * inventory.attention_space;
  }

  std::int64_t target(const Inventory& inventory, std::int64_t source_tokens) const {
    const kernels::Unit& u = *unit_settings(spec_, spec_.dec_cell).unit;
    const std::int64_t m = inventory.memory_width, a = inventory.attention_space;
    const bool deep = spec_.type == "deep", gnmt = spec_.type == "gnmt";
    std::int64_t sum = e_ + dropped(spec_.dropout_emb, e_) + unit(u, e_);
    if (m > 0)
      sum += a + m + spec_.heads * source_tokens + (asks_recurrently(spec_) ? higher(u, m) : 0);
    if (deep) sum += residual();
    for (int layer = 1; layer < spec_.dec_depth; ++layer) {
      const std::int64_t input = (deep ? e_ : h_) + m;
      sum += deep && spec_.context_aware ? unit(u, e_) + unit(u, m)
                                         : unit(u, input) + (m > 0 ? input : 0);
      sum += deep ? residual() : dropped(spec_.dropout_rnn, input);
      if (gnmt && layer >= 2) sum += h_;
    }
    const std::int64_t features = gnmt ? h_ : deep ? e_ + m : h_ + m + e_;
    if (!gnmt && !deep) sum += dropped(spec_.dropout_rnn, h_);
    sum += 2 * features;                        // of all positions, then of the real tokens
    if (!gnmt) sum += e_ * (normal() ? 4 : 2);  // the readout
    return sum + dropped(spec_.dropout_readout, e_) + e_ +
           features;  // its gradients when the backward pass begins
  }

 private:
  const ModelSpec& spec_;
  std::int64_t e_, h_;
};

}  // namespace

TrainingMemory training_memory(const ModelSpec& spec, const Inventory& inventory,
                               int target_vocabulary, const BatchSize& batch, int optimizer_states,
                               bool average) {
  const Kept kept(spec);
  const std::int64_t positions_s = batch.sentences * batch.source_tokens,
                     positions_t = batch.sentences * batch.target_tokens;
  TrainingMemory memory;
  memory.weights = memory.gradients = float_bytes * inventory.parameters();
  memory.optimizer = optimizer_states * memory.weights;
  memory.average = average ? memory.weights : 0;
  memory.activations = float_bytes * (positions_s * kept.source(inventory) +
                                      positions_t * kept.target(inventory, batch.source_tokens) +
                                      kernels::softmax_loss_scratch(
                                          Cpu{}, positions_t, spec.dim_emb, target_vocabulary));
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
