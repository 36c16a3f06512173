#include "nn/recurrent/transition_layer.h"

#include "nn/recurrent/cell.h"

namespace nmt {

TransitionLayer::TransitionLayer(const Builder& builder, const UnitSettings& settings,
                                 std::int64_t input, std::int64_t higher_input)
    : convolution_(Builder(builder, "lower"), settings.convolution, input),
      input_(Builder(builder, "lower"), "input_projection", settings, input),
      higher_projection_(Builder(builder, "higher"), "input_projection", settings, higher_input),
      lower_(make_cell(Builder(builder, "lower"), settings)),
      higher_(make_cell(Builder(builder, "higher"), settings)),
      state_dropout_(settings.state_dropout) {
  refuse_matrix_state(settings, "context-aware layers", "context-aware: false");
  builder.note_recurrence("two units a step", "two units a step");
}

std::vector<Var> TransitionLayer::operator()(Tape& tape, const Var& x,
                                             const ops::Projections& higher_x,
                                             const std::vector<Var>& initial, const Tensor& mask,
                                             bool reverse, std::int64_t position) const {
  const InputConvolution::Result in =
      convolution_(tape, x, initial, lower_.unit->states, mask, reverse);
  const auto run = [&](const ops::Cell& lower, const ops::Cell& higher) {
    std::vector<Var> states = ops::transition(tape, lower, higher, input_.for_units(tape, in.x),
                                              higher_x, in.initial, mask, reverse, position);
    if (in.last) states.push_back(in.last);
    return states;
  };
  if (!drops(tape, lower_, state_dropout_)) return run(lower_, higher_);
  const std::int64_t batch = x->value.shape()[1];
  const ops::Cell lower = with_dropout(tape, lower_, state_dropout_, batch);
  return run(lower, with_dropout(tape, higher_, state_dropout_, batch));
}

std::int64_t TransitionLayer::saved_floats() const {
  return convolution_.saved_floats() + input_.saved_floats() + higher_projection_.saved_floats() +
         nmt::saved_floats(lower_, state_dropout_) + nmt::saved_floats(higher_, state_dropout_);
}

void TransitionLayer::freeze(const Context& context) const {
  input_.freeze(context);
  higher_projection_.freeze(context);
  ops::freeze(context, lower_);
  ops::freeze(context, higher_);
}

}  // namespace nmt
