#include "model/encoder.h"

#include "autograd/ops/linear.h"
#include "autograd/ops/plain.h"
#include "model/block/block_encoder.h"
#include "nn/unit_registry.h"
#include "tensor/branches.h"

namespace nmt {

Residual::Residual(const Builder& builder, std::int64_t from, std::int64_t to,
                   bool layer_normalization)
    : weight_(&builder.add("output_projection", {from, to}, Builder::Init::glorot)) {
  if (layer_normalization)
    normalization_ = Normalization(builder, "output_norm", to);
  else
    bias_ = &builder.add("output_projection_bias", {to}, Builder::Init::zero);
}

Var Residual::operator()(Tape& tape, const Var& x, const Var& h, float dropout) const {
  if (normalization_)
    return ops::residual_norm(tape, x, h, *weight_, *normalization_.gain, *normalization_.bias,
                              dropout);
  return ops::add(tape, ops::dropout(tape, ops::linear(tape, h, *weight_, bias_), dropout), x);
}

std::int64_t Residual::saved_floats(bool drops) const {
  return weight_->shape[-1] * (drops && !normalization_ ? 3 : 2);
}

void Residual::freeze(const Context& context) const {
  ops::freeze(context, *weight_);
}

UnitSettings unit_settings(const ModelSpec& spec, const std::string& cell) {
  const kernels::Unit& unit = find_unit(cell, {
#define NMT_UNIT_OPTION(member, Enum, option, help, usual, other) \
  {option, std::string(name_of(spec.member))},
#include "config/enums/unit_options.def"
#undef NMT_UNIT_OPTION
                                              });
  return {&unit,
          spec.dim_rnn,
          spec.layer_normalization,
          spec.bias,
          spec.groups,
          spec.rearrange,
          spec.positions,
          {spec.gate_init.value_or(GateInit::none), spec.gate_bias, spec.gate_steps},
          static_cast<float>(spec.dropout_state),
          spec.convolution,
          spec.state_heads,
          spec.state_width};
}

BidirectionalLayer::BidirectionalLayer(const Builder& builder, const UnitSettings& settings,
                                       std::int64_t input, bool context_aware)
    : forward_(Builder(builder, "forward"), settings, input),
      width_(context_aware ? settings.width : 2 * settings.width) {
  const Builder backward(builder, "backward");
  if (context_aware)
    aware_.emplace(backward, settings, input, settings.width);
  else
    backward_.emplace(backward, settings, input);
}

BidirectionalLayer::Result BidirectionalLayer::operator()(
    Tape& tape, const Var& x, const ops::PaddedSentences& sentences) const {
  const Context& context = tape.context();
  Branches directions(
      context, backward_ && forward_.can_branch() && backward_->can_branch() && !tape.probe());
  forward_.prepare(tape, x);
  directions.fork();
  const Var ahead = forward_(tape, x, {}, sentences)[0];
  if (aware_) {
    const ops::Projections higher_x = aware_->higher_projection().for_units(tape, ahead);
    const Var back = (*aware_)(tape, x, higher_x, {}, sentences.mask, true)[0];
    return {back, ops::step(tape, back, 0)};
  }
  directions.second();
  const Var back = (*backward_)(tape, x, {}, sentences, true)[0];
  directions.join();
  // The state of a shorter sentence is carried to the last step.
  const std::int64_t last = x->value.shape()[0] - 1;
  return {ops::concat(tape, {ahead, back}),
          ops::concat(tape, {ops::step(tape, ahead, last), ops::step(tape, back, 0)})};
}

std::int64_t BidirectionalLayer::saved_floats() const {
  return forward_.saved_floats() +
         (aware_ ? aware_->saved_floats() : backward_->saved_floats() + width_);
}

void BidirectionalLayer::freeze(const Context& context) const {
  forward_.freeze(context);
  if (backward_) backward_->freeze(context);
  if (aware_) aware_->freeze(context);
}

std::unique_ptr<Encoder> Encoder::make(const Builder& builder, const ModelSpec& spec) {
  if (architecture_of(spec).has_blocks()) return std::make_unique<BlockEncoder>(builder, spec);
  return std::make_unique<StackedEncoder>(builder, spec);
}

StackedEncoder::StackedEncoder(const Builder& builder, const ModelSpec& spec)
    : first_(Builder(builder, "layer_0"), unit_settings(spec, spec.enc_cell).at(0, spec.enc_depth),
             spec.dim_emb, spec.context_aware),
      architecture_(architecture_of(spec)),
      dropout_(static_cast<float>(spec.dropout_rnn)),
      width_(first_.width()),
      final_width_(first_.width()) {
  const bool projected = architecture_.is_projected();
  const std::int64_t e = spec.dim_emb;
  UnitSettings upper = unit_settings(spec, spec.enc_cell);
  if (spec.dim_enc_upper > 0) upper.width = spec.dim_enc_upper;
  const auto close = [&](const Builder& at, std::int64_t from) {
    if (projected) residuals_.emplace_back(at, from, e, spec.layer_normalization);
    width_ = projected ? e : from;
  };
  close(Builder(builder, "layer_0"), first_.width());
  for (int layer = 1; layer < spec.enc_depth; ++layer) {
    const Builder at(builder, "layer_" + std::to_string(layer));
    upper_.emplace_back(at, upper.at(layer, spec.enc_depth), width_);
    close(at, upper.width);
    final_width_ = upper.width;
  }
}

StackedEncoder::Result StackedEncoder::operator()(Tape& tape, Var x,
                                                  const ops::PaddedSentences& sentences) const {
  const bool projected = architecture_.is_projected();
  // The state of a shorter sentence is carried to the last step.
  const std::int64_t last = x->value.shape()[0] - 1;
  auto [out, final_state] = first_(tape, x, sentences);
  if (projected) out = residuals_[0](tape, x, out, dropout_);
  x = {};
  Var top;
  for (std::size_t i = 0; i < upper_.size(); ++i) {
    top = upper_[i](tape, projected ? out : ops::dropout(tape, out, dropout_), {}, sentences)[0];
    if (projected)
      out = residuals_[i + 1](tape, out, top, dropout_);
    else
      out = architecture_.adds_input(static_cast<int>(i) + 1) ? ops::add(tape, top, out) : top;
  }
  if (top) final_state = ops::step(tape, top, last);
  return {architecture_.drops_top() ? ops::dropout(tape, out, dropout_) : out, final_state};
}

std::int64_t StackedEncoder::saved_floats(std::int64_t) const {
  std::int64_t sum = first_.saved_floats();
  for (const Residual& residual : residuals_) sum += residual.saved_floats(dropout_ > 0);
  const bool drops_inputs = dropout_ > 0 && !architecture_.is_projected();
  std::int64_t width = first_.width();
  for (std::size_t i = 0; i < upper_.size(); ++i) {
    sum += upper_[i].saved_floats() + (drops_inputs ? width : 0);
    width = upper_[i].width();
    if (architecture_.adds_input(static_cast<int>(i) + 1)) sum += width;
  }
  return sum + (dropout_ > 0 && architecture_.drops_top() ? width : 0);
}

void StackedEncoder::freeze(const Context& context) const {
  first_.freeze(context);
  for (const RecurrentLayer& layer : upper_) layer.freeze(context);
  for (const Residual& residual : residuals_) residual.freeze(context);
}

}  // namespace nmt
