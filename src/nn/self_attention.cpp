#include "nn/self_attention.h"

#include "autograd/ops/attention.h"
#include "autograd/ops/linear.h"

namespace nmt {

using Init = Builder::Init;

SelfAttention::SelfAttention(const Builder& builder, std::int64_t width, std::int64_t heads,
                             bool rotary, float output_scale)
    : heads_(heads), rotary_(rotary) {
  if (heads < 1 || width % heads != 0)
    fail(ExitStatus::usage, "encoder-heads: {} does not divide dim-emb {}", heads, width);
  if (rotary && width / heads % 2 != 0)
    fail(ExitStatus::usage,
         "encoder-heads: {} heads of {} channels; rotary positions need an even number of channels",
         heads, width / heads);
  // Query, key and value of a head are adjacent columns: each is orthogonal by itself.
  const auto planes = static_cast<int>(builder.is_orthogonal() ? 3 * heads : 3);
  joined_ = &builder.add("joined_projection", {width, 3 * width}, Init::glorot, planes);
  output_ = &builder.scaled(output_scale).add("output_projection", {width, width}, Init::glorot);
}

Var SelfAttention::operator()(Tape& tape, const Var& x, const Tensor& turns,
                              const Tensor& lengths) const {
  Var joined = ops::linear(tape, x, *joined_);
  if (rotary_) joined = ops::rotate(tape, std::move(joined), heads_, turns);
  return ops::linear(tape, ops::self_attention(tape, joined, heads_, lengths), *output_);
}

std::int64_t SelfAttention::saved_floats(std::int64_t steps) const {
  const std::int64_t width = output_->shape[1];
  return (rotary_ ? 6 : 3) * width + heads_ * steps + 2 * width;
}

void SelfAttention::freeze(const Context& context) const {
  ops::freeze(context, *joined_);
  ops::freeze(context, *output_);
}

}  // namespace nmt
