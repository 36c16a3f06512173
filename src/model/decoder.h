#pragma once

#include "model/encoder.h"

#include <deque>
#include <optional>
#include <vector>

namespace nmt {

/// The recurrent states between two steps: the state vectors [B,H] of each layer, and the position
/// of the next step if the unit has position vectors.
struct DecoderState : std::vector<std::vector<Var>> {
  using vector::vector;
  std::int64_t position = 0;
};

/// Maps target embeddings and an encoded source to readout vectors, for any number of steps at
/// once: all of them in training, one in search. With attention, the first layer is conditional
/// (attention-query: recurrent), or a plain one whose outputs query the source; the layers above
/// read [x; c], or, if context-aware, x with their first unit and c with their second. Without
/// attention, the source enters only through the initial states. The architecture determines
/// residuals, initial states and the readout (model/architecture.h).
class Decoder {
 public:
  Decoder(const Builder& builder, const ModelSpec& spec, std::int64_t memory_width,
          std::int64_t final_width);

  /// The memory of attention: the annotations [S,B,M], or their value projections, and their keys,
  /// computed once per source. Empty without attention.
  ops::Memory remember(Tape& tape, const Var& annotations, const Tensor& lengths) const;
  /// Initial states, from the encoder's final state [B,F] or zero.
  DecoderState start(Tape& tape, const Var& final_state) const;

  struct Result {
    Var features;        ///< [T,B,..] what the readout reads
    DecoderState state;  ///< after the last step
    Tensor weights;      ///< [T,B,heads,S]; empty without attention
  };
  /// y [T,B,E]; sentence: i32 [B], in search the source sentence of each row; empty: row b reads
  /// sentence b.
  Result operator()(Tape& tape, const Var& y, const ops::Memory& memory, const DecoderState& state,
                    const Tensor& sentence) const;
  /// The readout of features [R,..] -> [R,E], with layer normalization and dropout. `rows` i32 [R]:
  /// their rows in [T,B], for dropout.
  Var readout(Tape& tape, const Var& features, const Tensor& rows = {}) const;
  /// As RecurrentLayer::saved_floats(), for a target position of all layers and the readout with a
  /// source of this length, plus the memory's share per source position.
  std::int64_t saved_floats(std::int64_t source_tokens) const;
  std::int64_t saved_source_floats() const;
  void freeze(const Context& context) const;

 private:
  UnitSettings first_settings(const ModelSpec& spec) const;
  void make_attention(const Builder& first, const ModelSpec& spec, std::int64_t memory_width);
  void make_layers(const Builder& builder, const ModelSpec& spec, std::int64_t memory_width);
  void make_initial_states(const Builder& builder, std::int64_t layers, std::int64_t from);
  void make_readout(const Builder& builder, const ModelSpec& spec, std::int64_t memory_width);
  /// The states of the first layer, and the context (empty without attention).
  std::vector<Var> first_layer(Tape& tape, const Var& y, const ops::Memory& memory,
                               const std::vector<Var>& initial, const Tensor& sentence,
                               std::int64_t position, ops::Attended& attended) const;
  std::vector<Var> upper_layer(Tape& tape, std::size_t layer, const Var& x, const Var& c,
                               const std::vector<Var>& initial, std::int64_t position) const;

  const Architecture& architecture_;
  UnitSettings settings_;
  std::vector<Parameter*> initial_;  // [F,H] for each layer and given state vector
  std::vector<Parameter*> initial_bias_;
  Parameter* memory_projection_ = nullptr;
  Parameter* value_projection_ = nullptr;
  Parameter* query_ = nullptr;  // first-layer attention
  ops::AttentionShape attention_;
  std::optional<ConditionalLayer> conditional_;
  std::optional<RecurrentLayer> first_;
  std::deque<RecurrentLayer> upper_;
  std::deque<TransitionLayer> aware_;  // replaces upper_
  std::deque<Residual> residuals_;     // projected residuals
  Parameter* readout_ = nullptr;
  Parameter* readout_bias_ = nullptr;
  Normalization readout_normalization_;
  float dropout_, dropout_readout_;
  bool upper_context_;
  std::int64_t embedding_, features_ = 0;  // E; width of what the readout or the softmax reads
  std::size_t layers_;
};

}  // namespace nmt
