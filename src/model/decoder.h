#pragma once

#include "autograd/ops/attention.h"
#include "autograd/ops/recurrent.h"
#include "model/encoder.h"
#include "nn/recurrent/conditional_layer.h"
#include "nn/recurrent/recurrent_layer.h"
#include "nn/recurrent/transition_layer.h"

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

/// The encoded source as the decoder's attentions read it: one memory for each of them, in order of
/// the layers. Without attention, a memory with lengths alone.
struct SourceMemory : std::vector<ops::Memory> {
  using vector::vector;
  const Tensor& lengths() const { return front().lengths; }
  /// Source positions S; 0 without attention.
  std::int64_t steps() const { return front().steps(); }
};

/// Maps target embeddings and an encoded source to readout vectors, for any number of steps at
/// once: all of them in training, one in search.
class Decoder {
 public:
  /// The decoder of the spec's architecture, over annotations of width `memory_width` and a final
  /// state of width `final_width`.
  static std::unique_ptr<Decoder> make(const Builder& builder, const ModelSpec& spec,
                                       std::int64_t memory_width, std::int64_t final_width);
  virtual ~Decoder() = default;

  /// The annotations [S,B,M], or their value projections, and their keys, computed once per source.
  virtual SourceMemory remember(Tape& tape, const Var& annotations,
                                const Tensor& lengths) const = 0;
  /// Initial states, from the encoder's final state [B,F] or zero.
  virtual DecoderState start(Tape& tape, const Var& final_state) const = 0;

  struct Result {
    Var features;        ///< [T,B,..] what the readout reads
    DecoderState state;  ///< after the last step
    /// [T,B,heads,S], of the last layer that has an attention; empty without attention.
    Tensor weights;
  };
  /// y [T,B,E]; sentence: i32 [B], in search the source sentence of each row; empty: row b reads
  /// sentence b.
  virtual Result operator()(Tape& tape, const Var& y, const SourceMemory& memory,
                            const DecoderState& state, const Tensor& sentence) const = 0;
  /// The readout of features [R,..] -> [R,E], with layer normalization and dropout. `rows` i32 [R]:
  /// their rows in [T,B], for dropout.
  virtual Var readout(Tape& tape, const Var& features, const Tensor& rows = {}) const = 0;
  /// As RecurrentLayer::saved_floats(), for a target position of all layers and the readout with a
  /// source of this length, plus the memory's share per source position.
  virtual std::int64_t saved_floats(std::int64_t source_tokens) const = 0;
  virtual std::int64_t saved_source_floats() const = 0;
  virtual void freeze(const Context& context) const = 0;
};

/// The states [rows,H] of a layer without an initial state, one per state vector.
std::vector<Var> start_states(Tape& tape, const UnitSettings& settings, std::int64_t rows);

/// Stacked recurrent layers. With attention, the first layer is conditional (attention-query:
/// recurrent), or a plain one whose outputs query the source; the layers above read [x; c], or, if
/// context-aware, x with their first unit and c with their second. Without attention, the source
/// enters only through the initial states. The architecture determines residuals, initial states
/// and the readout (model/architecture.h).
class StackedDecoder : public Decoder {
 public:
  StackedDecoder(const Builder& builder, const ModelSpec& spec, std::int64_t memory_width,
                 std::int64_t final_width);
  SourceMemory remember(Tape& tape, const Var& annotations, const Tensor& lengths) const override;
  DecoderState start(Tape& tape, const Var& final_state) const override;
  Result operator()(Tape& tape, const Var& y, const SourceMemory& memory, const DecoderState& state,
                    const Tensor& sentence) const override;
  Var readout(Tape& tape, const Var& features, const Tensor& rows = {}) const override;
  std::int64_t saved_floats(std::int64_t source_tokens) const override;
  std::int64_t saved_source_floats() const override;
  void freeze(const Context& context) const override;

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
  /// `higher_xs`: the contexts' projections for all context-aware layers, where they are known.
  std::vector<Var> upper_layer(Tape& tape, std::size_t layer, const Var& x, const Var& c,
                               const std::vector<ops::Projections>& higher_xs,
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
  std::deque<TransitionLayer> aware_;                       // replaces upper_
  std::vector<const InputProjection*> higher_projections_;  // of aware_
  std::deque<Residual> residuals_;                          // projected residuals
  Parameter* readout_ = nullptr;
  Parameter* readout_bias_ = nullptr;
  Normalization readout_normalization_;
  float dropout_, dropout_readout_;
  bool upper_context_;
  std::int64_t embedding_, features_ = 0;  // E; width of what the readout or the softmax reads
  std::size_t layers_;
};

}  // namespace nmt
