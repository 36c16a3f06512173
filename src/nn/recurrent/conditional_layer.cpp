#include "nn/recurrent/conditional_layer.h"

#include "autograd/ops/linear.h"
#include "nn/recurrent/cell.h"

namespace nmt {

ConditionalLayer::ConditionalLayer(const Builder& builder, const UnitSettings& settings,
                                   std::int64_t input, std::int64_t memory, std::int64_t space,
                                   const ops::AttentionShape& attention)
    : convolution_(Builder(builder, "lower"), settings.convolution, input),
      input_(Builder(builder, "lower"), "input_projection", settings, input),
      context_(Builder(builder, "higher"), "input_projection", settings, memory),
      state_dropout_(settings.state_dropout) {
  refuse_matrix_state(settings, "the conditional decoder layer", "attention-query: first-layer");
  builder.note_recurrence("attention between two units", "attention between two units");
  layer_.lower = make_cell(Builder(builder, "lower"), settings);
  layer_.higher = make_cell(Builder(builder, "higher"), settings);
  layer_.attention = attention;
  layer_.query =
      &builder.add("attention.query_projection", {settings.width, space}, Builder::Init::glorot);
  layer_.context = context_.weight;
  layer_.context_bias = context_.bias;
  layer_.context_gain = context_.normalization.gain;
  layer_.context_norm_bias = context_.normalization.bias;
}

ops::ConditionalResult ConditionalLayer::operator()(Tape& tape, const Var& x,
                                                    const ops::Memory& memory,
                                                    const std::vector<Var>& initial,
                                                    const Tensor& sentence,
                                                    std::int64_t position) const {
  const InputConvolution::Result in =
      convolution_(tape, x, initial, layer_.lower.unit->states, {}, false);
  const auto run = [&](const ops::Conditional& layer) {
    ops::ConditionalResult result = ops::conditional(
        tape, layer, memory, input_.for_units(tape, in.x), in.initial, sentence, position);
    if (in.last) result.states.push_back(in.last);
    return result;
  };
  if (!drops(tape, layer_.lower, state_dropout_)) return run(layer_);
  const std::int64_t batch = x->value.shape()[1];
  ops::Conditional layer = layer_;
  layer.lower = with_dropout(tape, layer_.lower, state_dropout_, batch);
  layer.higher = with_dropout(tape, layer_.higher, state_dropout_, batch);
  return run(layer);
}

std::int64_t ConditionalLayer::saved_floats() const {
  return convolution_.saved_floats() + input_.saved_floats() + context_.saved_floats() +
         nmt::saved_floats(layer_.lower, state_dropout_) +
         nmt::saved_floats(layer_.higher, state_dropout_);
}

void ConditionalLayer::freeze(const Context& context) const {
  input_.freeze(context);
  context_.freeze(context);
  ops::freeze(context, layer_.lower);
  ops::freeze(context, layer_.higher);
  ops::freeze(context, *layer_.query);
}

}  // namespace nmt
