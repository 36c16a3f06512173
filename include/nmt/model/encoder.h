#pragma once

#include <deque>
#include <optional>

#include "nmt/config/specs.h"
#include "nmt/nn/recurrent_layer.h"

namespace nmt {

/// A linear map, the bridge of a layer back to the embedding's width, with the residual sum and layer normalisation of the `deep`
/// model (units.md 3.2): LN(x + dropout(h W)).
class Residual {
 public:
  Residual(const Builder& builder, std::int64_t from, std::int64_t to, bool layer_normalization);
  Var operator()(Tape& tape, const Var& x, const Var& h, float dropout) const;
  void freeze(const Context& context) const;

 private:
  Parameter* weight_;
  Parameter* bias_ = nullptr;
  Normalization normalization_;
};

/// Settings of a spec as layers take them.
UnitSettings unit_settings(const ModelSpec& spec, const std::string& cell);

/// Source embeddings to annotations. `rnnsearch`: one bidirectional layer, annotations [forward; backward]. `deep`: the first
/// layer bidirectional, the others forward, each followed by a Residual; annotations are as wide as the embedding.
class Encoder {
 public:
  Encoder(const Builder& builder, const ModelSpec& spec);
  struct Result {
    Var annotations;  ///< [S,B,M]
    Var final_state;  ///< [B, final_width()]: of the top layer; both directions' when that is bidirectional
  };
  /// x [S,B,E], mask [S,B]. Callers move x in: without recording, no value outlives its last use.
  Result operator()(Tape& tape, Var x, const Tensor& mask) const;
  std::int64_t width() const { return width_; }              ///< M
  std::int64_t final_width() const { return final_width_; }
  void freeze(const Context& context) const;

 private:
  RecurrentLayer forward_, backward_;
  std::deque<RecurrentLayer> upper_;
  std::deque<Residual> residuals_;
  float dropout_;
  std::int64_t width_, final_width_;
};

}  // namespace nmt
