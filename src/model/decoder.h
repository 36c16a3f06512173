#pragma once

#include "model/encoder.h"

#include <deque>
#include <optional>
#include <vector>

namespace nmt {

/// The recurrent states between two steps: for each layer its state vectors [B,H], and the position
/// of the next step where the unit has vectors of positions.
struct DecoderState : std::vector<std::vector<Var>> {
  using vector::vector;
  std::int64_t position = 0;
};

/// Target embeddings and an encoded source to readout vectors, for any number of steps at once: all
/// of them in training, one in search. The first layer is conditional (attention-query: recurrent),
/// or a plain one whose outputs query the source; in seq2seq without attention it is plain and the
/// source comes in through the initial states alone. The layers above:
///   deep     read [x; c], or, context-aware, x with their first unit and c with their second; each
///   followed by a Residual seq2seq  read [x; c], or x without attention gnmt     read [x; c]; from
///   the third layer on their output is the sum of input and states
/// Readout: tanh(W [h; c; y]) in rnnsearch and seq2seq, tanh(W [x; c]) in deep; gnmt's softmax
/// reads the top layer itself.
class Decoder {
 public:
  Decoder(const Builder& builder, const ModelSpec& spec, std::int64_t memory_width,
          std::int64_t final_width);

  /// What attention reads: the annotations [S,B,M], and their projection, once a source. Neither
  /// without attention.
  ops::Memory remember(Tape& tape, const Var& annotations, const Tensor& lengths) const;
  /// Initial states from the encoder's final state [B,F]; zeros in gnmt.
  DecoderState start(Tape& tape, const Var& final_state) const;

  struct Result {
    Var features;        ///< [T,B,..] what the readout reads
    DecoderState state;  ///< after the last step
    Tensor weights;      ///< [T,B,heads,S]; empty without attention
  };
  /// y [T,B,E]; sentence i32 [B] names the memory's sentence of each row in search, empty: its own.
  Result operator()(Tape& tape, const Var& y, const ops::Memory& memory, const DecoderState& state,
                    const Tensor& sentence) const;
  /// The readout of features [R,..] -> [R,E], with layer normalization and dropout. `rows` i32 [R]:
  /// where they stand in [T,B], for dropout.
  Var readout(Tape& tape, const Var& features, const Tensor& rows = {}) const;
  void freeze(const Context& context) const;

 private:
  enum class Type { rnnsearch, deep, seq2seq, gnmt };
  void make_attention(const Builder& first, const ModelSpec& spec, std::int64_t memory_width);
  void make_layers(const Builder& builder, const ModelSpec& spec, std::int64_t memory_width);
  void make_initial_states(const Builder& builder, std::int64_t layers, std::int64_t from);
  /// The states of the first layer, and the context, none without attention.
  std::vector<Var> first_layer(Tape& tape, const Var& y, const ops::Memory& memory,
                               const std::vector<Var>& initial, const Tensor& sentence,
                               std::int64_t position, ops::Attended& attended) const;
  std::vector<Var> upper_layer(Tape& tape, std::size_t layer, const Var& x, const Var& c,
                               const std::vector<Var>& initial, std::int64_t position) const;

  Type type_;
  UnitSettings settings_;
  std::vector<Parameter*> initial_;  // a map [F,H] a layer and given state vector
  std::vector<Parameter*> initial_bias_;
  Parameter* memory_projection_ = nullptr;
  Parameter* query_ = nullptr;  // first-layer attention
  ops::AttentionShape attention_;
  std::optional<ConditionalLayer> conditional_;
  std::optional<RecurrentLayer> first_;
  std::deque<RecurrentLayer> upper_;
  std::deque<TransitionLayer> aware_;  // in the place of upper_
  std::deque<Residual> residuals_;     // deep
  Parameter* readout_ = nullptr;
  Parameter* readout_bias_ = nullptr;
  Normalization readout_normalization_;
  float dropout_, dropout_readout_;
  std::size_t layers_;
};

}  // namespace nmt
