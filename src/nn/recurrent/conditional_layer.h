#pragma once

#include "autograd/ops/conditional.h"
#include "nn/builder.h"
#include "nn/recurrent/input_convolution.h"
#include "nn/recurrent/input_projection.h"
#include "nn/recurrent/unit_settings.h"

#include <cstdint>
#include <vector>

namespace nmt {

/// The conditional decoder layer with attention between its two units (Zhang et al.,
/// ATR, EMNLP 2018, section 4.1).
class ConditionalLayer {
 public:
  /// memory: M; space: A.
  ConditionalLayer(const Builder& builder, const UnitSettings& settings, std::int64_t input,
                   std::int64_t memory, std::int64_t space, const ops::AttentionShape& attention);
  /// The states as RecurrentLayer.
  ops::ConditionalResult operator()(Tape& tape, const Var& x, const ops::Memory& memory,
                                    const std::vector<Var>& initial, const Tensor& sentence,
                                    std::int64_t position = 0) const;
  /// As RecurrentLayer::saved_floats(), without those of attention.
  std::int64_t saved_floats() const;
  void freeze(const Context& context) const;

 private:
  InputConvolution convolution_;
  InputProjection input_, context_;
  ops::Conditional layer_;
  float state_dropout_;
};

}  // namespace nmt
