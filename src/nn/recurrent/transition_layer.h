#pragma once

#include "autograd/ops/recurrent.h"
#include "nn/builder.h"
#include "nn/recurrent/input_convolution.h"
#include "nn/recurrent/input_projection.h"
#include "nn/recurrent/unit_settings.h"

#include <cstdint>
#include <vector>

namespace nmt {

/// A layer with two units per step, the second over a given sequence
/// (kernels/recurrent/transition.h).
class TransitionLayer {
 public:
  TransitionLayer(const Builder& builder, const UnitSettings& settings, std::int64_t input,
                  std::int64_t higher_input);
  /// x [T,B,input], higher_x [T,B,higher_input] projected by higher_projection() -> the states of
  /// the higher unit after each step and `last` of x as RecurrentLayer.
  std::vector<Var> operator()(Tape& tape, const Var& x, const ops::Projections& higher_x,
                              const std::vector<Var>& initial, const Tensor& mask,
                              bool reverse = false, std::int64_t position = 0) const;
  const InputProjection& higher_projection() const { return higher_projection_; }
  /// As RecurrentLayer::saved_floats().
  std::int64_t saved_floats() const;
  void freeze(const Context& context) const;

 private:
  InputConvolution convolution_;
  InputProjection input_, higher_projection_;
  ops::Cell lower_, higher_;
  float state_dropout_;
};

}  // namespace nmt
