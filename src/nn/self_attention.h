#pragma once

#include "autograd/tape.h"
#include "nn/builder.h"

#include <cstdint>

namespace nmt {

/// Multi-head self-attention over padded sentences (Vaswani et al. 2017, section 3.2.2), from width
/// E to E, without biases.
class SelfAttention {
 public:
  /// `output_scale` multiplies the initial values of the output projection. Error (usage): the
  /// heads do not divide the width, or with rotary positions not into an even number of channels.
  SelfAttention(const Builder& builder, std::int64_t width, std::int64_t heads, bool rotary,
                float output_scale = 1.0f);
  /// x [T,B,E] -> [T,B,E]. turns: ops::turns() of T steps and size() channels; empty without rotary
  /// positions. lengths: i32 [B].
  Var operator()(Tape& tape, const Var& x, const Tensor& turns, const Tensor& lengths) const;
  /// Channels of a head.
  std::int64_t size() const { return output_->shape[0] / heads_; }
  /// As RecurrentLayer::saved_floats(), for sentences of so many tokens.
  std::int64_t saved_floats(std::int64_t steps) const;
  void freeze(const Context& context) const;

 private:
  Parameter* joined_ = nullptr;  // [E,3E]: the query, key and value of each head side by side
  Parameter* output_ = nullptr;  // [E,E]
  std::int64_t heads_;
  bool rotary_;
};

}  // namespace nmt
