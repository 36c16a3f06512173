#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "nmt/model/encoder.h"

namespace nmt {

/// The recurrent states between two steps: for each layer its state vectors [B,H].
using DecoderState = std::vector<std::vector<Var>>;

/// Target embeddings and an encoded source to readout vectors, for any number of steps at once: all of them in training, one in
/// search. `attention-query: recurrent` has a conditional first layer; `first-layer` a plain one whose outputs query the source.
class Decoder {
 public:
  Decoder(const Builder& builder, const ModelSpec& spec, std::int64_t memory_width, std::int64_t final_width);

  /// What attention reads of the annotations [S,B,M]: their projection, once a source.
  ops::Memory remember(Tape& tape, const Var& annotations, const Tensor& lengths) const;
  /// Initial states from the encoder's final state [B,F].
  DecoderState start(Tape& tape, const Var& final_state) const;

  struct Result {
    Var features;        ///< [T,B,readout_input()] what the readout reads
    DecoderState state;  ///< after the last step
    Tensor weights;      ///< [T,B,heads,S]
  };
  /// y [T,B,E]; sentence i32 [B] names the memory's sentence of each row in search, empty: its own.
  Result operator()(Tape& tape, const Var& y, const ops::Memory& memory, const DecoderState& state, const Tensor& sentence) const;
  /// tanh of the readout projection of features [R,..] -> [R,E], with layer normalisation and dropout.
  Var readout(Tape& tape, const Var& features) const;
  void freeze(const Context& context) const;

 private:
  std::vector<Parameter*> initial_;  // a map [F,H] a layer and state vector
  std::vector<Parameter*> initial_bias_;
  int states_;
  bool rnnsearch_;
  Parameter* memory_projection_;
  Parameter* query_ = nullptr;       // first-layer attention
  ops::AttentionShape attention_;
  std::optional<ConditionalLayer> conditional_;
  std::optional<RecurrentLayer> first_;
  std::deque<RecurrentLayer> upper_;
  std::deque<Residual> residuals_;
  Parameter* readout_;
  Parameter* readout_bias_ = nullptr;
  Normalization readout_normalization_;
  float dropout_, dropout_readout_;
};

}  // namespace nmt
