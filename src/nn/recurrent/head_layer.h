#pragma once

#include "autograd/ops/recurrent.h"
#include "nn/recurrent/recurrent_layer.h"

namespace nmt {

/// What a layer of a matrix-state unit has beside other recurrent layers: the projection of x for
/// the heads, with bias, and, if the unit asks for it, layer normalization of the output of each
/// head (Yang et al., arXiv 2312.06635, section 4.4).
class HeadLayer {
 public:
  HeadLayer(const Builder& builder, const UnitSettings& settings, std::int64_t input);
  /// x [T,B,input], projected [T,B,inputs*H] -> h after every step, [T,B,H], and the memory after
  /// the last, [1,B,W].
  std::vector<Var> operator()(Tape& tape, const ops::Cell& cell, const Var& x, const Var& projected,
                              const std::vector<Var>& initial, const Tensor& mask,
                              bool reverse) const;
  /// As RecurrentLayer::saved_floats(), with the unit's states and without xW.
  std::int64_t saved_floats() const { return saved_floats_; }
  void freeze(const Context& context) const;

 private:
  Parameter* weight_;
  Parameter* bias_;
  Normalization normalization_;
  int heads_;
  std::int64_t saved_floats_;
};

}  // namespace nmt
