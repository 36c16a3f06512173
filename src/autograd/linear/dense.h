#pragma once

#include "autograd/tape.h"
#include "kernels/products/product_input.h"

#include <cstdint>

namespace nmt::ops {

/// The product of a dense layer, x [..,k] W [k,n], for the ops that contain one.
struct Dense {
  std::int64_t rows, k, n;
  /// Error (internal): the shapes do not match.
  Dense(const Var& x, const Parameter& weight);
  double flops() const { return 2.0 * static_cast<double>(rows * n) * static_cast<double>(k); }
  /// The result in bfloat16, in training on a device whose products read that; else empty.
  Tensor forward_rounded(Tape& tape, const Var& x, Parameter& weight) const;
  /// x W, plus the bias where it is given.
  Tensor forward(Tape& tape, const Var& x, Parameter& weight, const Parameter* bias) const;
  /// Adds to the gradients of weight and x, from that of the result.
  void backward(Tape& tape, const Var& x, Parameter& weight, const kernels::ProductInput& dy) const;
};

}  // namespace nmt::ops
