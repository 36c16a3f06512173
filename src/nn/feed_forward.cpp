#include "nn/feed_forward.h"

#include "autograd/ops/linear.h"
#include "autograd/ops/plain.h"

namespace nmt {

using Init = Builder::Init;

FeedForward::FeedForward(const Builder& builder, FeedForwardKind kind, std::int64_t width,
                         std::int64_t inner, float output_scale) {
  NMT_CHECK(kind != FeedForwardKind::none, "a feed-forward layer without a kind");
  gate_ = &builder.add("gate_projection", {width, inner}, Init::glorot);
  if (kind == FeedForwardKind::swiglu)
    input_ = &builder.add("input_projection", {width, inner}, Init::glorot);
  else
    bias_ = &builder.add("gate_projection_bias", {inner}, Init::zero);
  output_ = &builder.scaled(output_scale).add("output_projection", {inner, width}, Init::glorot);
  if (!input_) output_bias_ = &builder.add("output_projection_bias", {width}, Init::zero);
}

Var FeedForward::operator()(Tape& tape, const Var& x) const {
  Var gate = ops::linear(tape, x, *gate_, bias_);
  const Var inner = input_ ? ops::gate(tape, kernels::Activation::silu, std::move(gate),
                                       ops::linear(tape, x, *input_))
                           : ops::gate(tape, kernels::Activation::relu, std::move(gate));
  return ops::linear(tape, inner, *output_, output_bias_);
}

std::int64_t FeedForward::saved_floats() const {
  return gate_->shape[1] * (input_ ? 3 : 2) + output_->shape[1];
}

void FeedForward::freeze(const Context& context, bool steps) const {
  ops::freeze(context, *gate_);
  if (input_) ops::freeze(context, *input_);
  if (steps && !input_)
    ops::freeze_for_zeros(context, *output_);
  else
    ops::freeze(context, *output_);
}

}  // namespace nmt
