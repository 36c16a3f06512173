#pragma once

#include "config/specs.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// What is added to the states h of a layer to give its output.
enum class ResidualKind {
  none,       ///< the output is h, [..,H]
  projected,  ///< after every layer, LN(x + dropout(hW)) for its input x, [..,E]
  sum,        ///< from layer `first_sum` on h + x for the output x of the layer below, [..,H]
  pre_norm    ///< blocks: x + dropout(f(LN(x))) around every part f of a layer, [..,E]
};

/// Initial states of the decoder, from the final state of the encoder's top layer.
enum class InitialState {
  tanh,    ///< tanh of a linear layer, one for each decoder layer and state vector
  linear,  ///< the linear layer alone
  zero
};

/// What becomes of the output of the decoder's top layer before the softmax.
enum class ReadoutKind {
  states_context_input,  ///< tanh(W [h; c; y']) with y' the embedding of the previous target word
  output_context,        ///< tanh(W [x; c]) with x the output of the top layer
  none                   ///< the softmax reads the top layer itself, which is then E wide
};

/// The smallest and largest number of layers of one side.
struct LayerLimits {
  int min = 1, max = 1;
};
constexpr int max_layers = std::numeric_limits<int>::max();

/// One row of config/enums/architectures.def: all in which architectures differ. What all but those
/// of blocks (model/block) share: the first encoder layer reads both directions, the others go
/// forward; attention stands in the first decoder layer, and the layers above read its context c
/// too.
struct Architecture {
  ModelType type{};
  const char* description = "";
  const char* source = "";  ///< the paper
  LayerLimits encoder_layers = {1, max_layers}, decoder_layers = {1, max_layers};
  ResidualKind residual = ResidualKind::none;
  int first_sum = 2;  ///< ResidualKind::sum: the first layer, from 0, whose input is added
  InitialState initial_state = InitialState::tanh;
  ReadoutKind readout = ReadoutKind::states_context_input;
  /// Dropout on the top layer's output of either side as well, besides the one on the inputs of
  /// upper layers. Projected residuals have theirs inside and neither of these.
  bool drops_top_output = true;
  /// Whether `attention-query: auto` is recurrent, a conditional first decoder layer.
  bool conditional_by_default = true;
  bool without_attention = false;  ///< attention none is allowed
  bool context_aware = false;      ///< context-aware is allowed

  std::string_view name() const { return name_of(type); }
  bool is_projected() const { return residual == ResidualKind::projected; }
  /// Whether encoder and decoder consist of gated blocks, and BlockSpec has a meaning.
  bool has_blocks() const { return residual == ResidualKind::pre_norm; }
  bool adds_input(int layer) const { return residual == ResidualKind::sum && layer >= first_sum; }
  bool drops_top() const { return drops_top_output && !is_projected(); }
  /// Width of a layer's output.
  std::int64_t output_width(const ModelSpec& spec) const {
    return is_projected() || has_blocks() ? spec.dim_emb : spec.dim_rnn;
  }
  /// Both sides' limits in one, for a depth that both are to have.
  constexpr LayerLimits common_layers() const {
    return {std::max(encoder_layers.min, decoder_layers.min),
            std::min(encoder_layers.max, decoder_layers.max)};
  }
};

/// All rows, in order.
std::span<const Architecture> architectures();
/// The row of spec.type.
const Architecture& architecture_of(const ModelSpec& spec);
/// Whether the layers of the encoder are of self-attention instead of units.
bool encoder_attends(const ModelSpec& spec);
/// The units that the model of spec.task has: of the encoder, of the decoder, or of both in turn.
std::vector<std::string> units_of(const ModelSpec& spec);
/// "a, b and c": the names of the rows that satisfy a condition.
std::string architecture_names(bool (*condition)(const Architecture&));

}  // namespace nmt
