#include "nn/gated_unit.h"

namespace nmt {

using Init = Builder::Init;

namespace {

Builder unit_builder(const Builder& builder, UnitDirection direction) {
  return direction == UnitDirection::both ? Builder(builder, "forward") : builder;
}

}  // namespace

GatedUnit::GatedUnit(const Builder& builder, const UnitSettings& settings, std::int64_t width,
                     GateBranch gate, UnitDirection direction, float output_scale)
    : direction_(direction), kind_(gate), unit_(unit_builder(builder, direction), settings, width) {
  const bool both = direction == UnitDirection::both;
  if (both) second_.emplace(Builder(builder, "backward"), settings, width);
  const std::int64_t states = settings.width * (both ? 2 : 1);
  if (gate != GateBranch::none)
    gate_ = &builder.add("gate_projection", {width, states}, Init::glorot);
  output_ = &builder.scaled(output_scale).add("output_projection", {states, width}, Init::glorot);
}

GatedUnit::Result GatedUnit::operator()(Tape& tape, const Var& x, const std::vector<Var>& initial,
                                        const ops::PaddedSentences& sentences,
                                        std::int64_t position) const {
  Result result;
  result.states =
      unit_(tape, x, initial, sentences, direction_ == UnitDirection::backward, position);
  Var h = result.states[0];
  if (second_) h = ops::concat(tape, {h, (*second_)(tape, x, {}, sentences, true)[0]});
  if (gate_)
    h = ops::gate(tape,
                  kind_ == GateBranch::gelu ? kernels::Activation::gelu : kernels::Activation::silu,
                  ops::linear(tape, x, *gate_), h);
  result.output = ops::linear(tape, h, *output_);
  return result;
}

std::int64_t GatedUnit::saved_floats() const {
  const std::int64_t states = output_->shape[0];
  return unit_.saved_floats() + (second_ ? second_->saved_floats() + states : 0) +
         (gate_ ? 2 * states : 0) + output_->shape[1];
}

void GatedUnit::freeze(const Context& context) const {
  unit_.freeze(context);
  if (second_) second_->freeze(context);
  if (gate_) ops::freeze(context, *gate_);
  ops::freeze(context, *output_);
}

}  // namespace nmt
