#pragma once

#include "autograd/tape.h"
#include "nn/builder.h"

#include <cstdint>

namespace nmt {

/// A feed-forward layer from width E to E with the inner width F:
///   swiglu  (silu(x W) * x V) O       (Shazeer 2020, eq. 6)
///   relu    max(x W + b, 0) O + c     (Vaswani et al. 2017, eq. 2)
class FeedForward {
 public:
  /// `output_scale` multiplies the initial values of O.
  FeedForward(const Builder& builder, FeedForwardKind kind, std::int64_t width, std::int64_t inner,
              float output_scale = 1.0f);
  /// x [..,E] -> [..,E]
  Var operator()(Tape& tape, const Var& x) const;
  /// As RecurrentLayer::saved_floats().
  std::int64_t saved_floats() const;
  /// `steps`: the layer reads one position at a time, as in decoding.
  void freeze(const Context& context, bool steps) const;

 private:
  Parameter* gate_ = nullptr;   // W [E,F]
  Parameter* input_ = nullptr;  // V [E,F], swiglu
  Parameter* bias_ = nullptr;
  Parameter* output_ = nullptr;  // O [F,E]
  Parameter* output_bias_ = nullptr;
};

}  // namespace nmt
