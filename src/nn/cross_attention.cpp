#include "nn/cross_attention.h"

#include "autograd/ops/linear.h"

namespace nmt {

using Init = Builder::Init;

CrossAttention::CrossAttention(const Builder& builder, const Settings& settings, std::int64_t width,
                               std::int64_t memory, float output_scale) {
  const std::int64_t space = settings.space;
  if (settings.heads < 1 || space % settings.heads != 0)
    fail(ExitStatus::usage, "heads: {} must divide the attention space {}", settings.heads, space);
  const Builder keys = builder.at(Parameter::Role::attention_keys);
  shape_.kind = settings.kind;
  shape_.heads = settings.heads;
  keys_ = &keys.add("memory_projection", {memory, space}, Init::glorot);
  values_ = &keys.add("value_projection", {memory, space}, Init::glorot);
  query_ = &builder.add("query_projection", {width, space}, Init::glorot);
  if (settings.kind == kernels::AttentionKind::additive)
    shape_.v = &builder.add("v", {space, 1}, Init::glorot);
  shape_.output =
      &builder.scaled(output_scale).add("output_projection", {space, width}, Init::glorot);
}

ops::Memory CrossAttention::remember(Tape& tape, const Var& annotations,
                                     const Tensor& lengths) const {
  return ops::remember(tape, shape_, ops::linear(tape, annotations, *values_),
                       ops::linear(tape, annotations, *keys_), lengths);
}

ops::Attended CrossAttention::operator()(Tape& tape, const Var& x, const ops::Memory& memory,
                                         const Tensor& sentence) const {
  return ops::attention(tape, shape_, memory, ops::linear(tape, x, *query_), sentence);
}

std::int64_t CrossAttention::saved_floats(std::int64_t source_tokens) const {
  const std::int64_t space = query_->shape[1];
  return 2 * space + shape_.heads * source_tokens + shape_.output->shape[1];
}

std::int64_t CrossAttention::saved_source_floats() const {
  // Additive attention keeps the exponentials of the keys as well.
  return (shape_.v ? 3 : 2) * query_->shape[1];
}

void CrossAttention::freeze(const Context& context) const {
  ops::freeze(context, *keys_);
  ops::freeze(context, *values_);
  ops::freeze(context, *query_);
  ops::freeze(context, *shape_.output);
}

}  // namespace nmt
