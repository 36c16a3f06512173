#include "nn/recurrent/gated_unit.h"

#include "autograd/ops/linear.h"
#include "autograd/ops/plain.h"

namespace nmt {

using Init = Builder::Init;

namespace {

Builder unit_builder(const Builder& builder, UnitDirection direction) {
  return direction == UnitDirection::both ? Builder(builder, "forward") : builder;
}

}  // namespace

GatedUnit::GatedUnit(const Builder& builder, const Settings& settings, std::int64_t width,
                     float output_scale)
    : direction_(settings.direction),
      kind_(settings.gate),
      unit_(unit_builder(builder, direction_), settings.unit, width) {
  const bool both = direction_ == UnitDirection::both;
  if (both) second_.emplace(Builder(builder, "backward"), settings.unit, width);
  states_ = settings.unit.width * (both ? 2 : 1);
  if (kind_ != GateBranch::none)
    gate_ = &builder.add("gate_projection", {width, states_}, Init::glorot);
  if (settings.projection)
    output_ =
        &builder.scaled(output_scale).add("output_projection", {states_, width}, Init::glorot);
  else if (states_ != width)
    fail(ExitStatus::usage,
         "unit-projection: without it, states must have the width dim-emb {}, not {}", width,
         states_);
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
  result.output = output_ ? ops::linear(tape, h, *output_) : std::move(h);
  return result;
}

std::int64_t GatedUnit::saved_floats() const {
  return unit_.saved_floats() + (second_ ? second_->saved_floats() + states_ : 0) +
         (gate_ ? 2 * states_ : 0) + (output_ ? output_->shape[1] : 0);
}

void GatedUnit::freeze(const Context& context) const {
  unit_.freeze(context);
  if (second_) second_->freeze(context);
  if (gate_) ops::freeze(context, *gate_);
  if (output_) ops::freeze(context, *output_);
}

}  // namespace nmt
