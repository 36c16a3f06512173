#pragma once

#include "autograd/tape.h"
#include "nn/builder.h"

#include <cstdint>
#include <vector>

namespace nmt {

/// The option `convolution`: what a recurrent layer reads passes through a depthwise convolution
/// that is causal in the direction of the layer (ops::convolution), as before the units of Griffin
/// and Mamba, without their activation. It starts as the identity.
class InputConvolution {
 public:
  InputConvolution() = default;  ///< none
  /// taps: 0 for none, or at least 2; width: of the input.
  InputConvolution(const Builder& builder, int taps, std::int64_t width);
  struct Result {
    Var x;                     ///< [T,B,E]
    std::vector<Var> initial;  ///< of the unit
    Var last;  ///< [1,B,(K-1)*E] the inputs that the next step needs; null if there are none
  };
  /// x [T,B,E]. initial: of the layer, the initial states of a unit with so many state vectors and,
  /// after other steps, their `last` [B,(K-1)*E].
  Result operator()(Tape& tape, const Var& x, const std::vector<Var>& initial, int states,
                    const Tensor& mask, bool reverse) const;
  explicit operator bool() const { return weight_ != nullptr; }
  /// Floats of `last` for a sentence.
  std::int64_t last_floats() const;
  /// As RecurrentLayer::saved_floats().
  std::int64_t saved_floats() const { return weight_ ? weight_->shape[1] : 0; }

 private:
  Parameter* weight_ = nullptr;  // [K,E]
  Parameter* bias_ = nullptr;    // [E]
};

}  // namespace nmt
