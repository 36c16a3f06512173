#include "nmt/model/encoder.h"

#include "nmt/nn/unit_registry.h"

namespace nmt {

Residual::Residual(const Builder& builder, std::int64_t from, std::int64_t to, bool layer_normalization)
    : weight_(&builder.add("output_projection", {from, to}, Builder::Init::glorot)) {
  if (layer_normalization) normalization_ = Normalization(builder, "output_norm", to);
  else bias_ = &builder.add("output_projection_bias", {to}, Builder::Init::zero);
}

Var Residual::operator()(Tape& tape, const Var& x, const Var& h, float dropout) const {
  Var sum = ops::add(tape, ops::dropout(tape, ops::linear(tape, h, *weight_, bias_), dropout), x);
  return normalization_ ? ops::layer_norm(tape, std::move(sum), *normalization_.gain, *normalization_.bias) : sum;
}

void Residual::freeze(const Context& context) const { ops::freeze(context, *weight_); }

UnitSettings unit_settings(const ModelSpec& spec, const std::string& cell) {
  const kernels::Unit& unit = find_unit(cell, {{"reset", spec.reset},
                                               {"activation", spec.activation},
                                               {"forget-gate", spec.forget_gate},
                                               {"input-gate", spec.input_gate}});
  return {&unit, spec.dim_rnn, spec.layer_normalization, spec.bias};
}

Encoder::Encoder(const Builder& builder, const ModelSpec& spec)
    : forward_(Builder(builder, "layer_0.forward"), unit_settings(spec, spec.enc_cell), spec.dim_emb),
      backward_(Builder(builder, "layer_0.backward"), unit_settings(spec, spec.enc_cell), spec.dim_emb),
      dropout_(static_cast<float>(spec.dropout_rnn)),
      width_(2 * spec.dim_rnn),
      final_width_(2 * spec.dim_rnn) {
  if (spec.type == "rnnsearch") return;
  residuals_.emplace_back(Builder(builder, "layer_0"), 2 * spec.dim_rnn, spec.dim_emb, spec.layer_normalization);
  for (int layer = 1; layer < spec.enc_depth; ++layer) {
    const Builder at(builder, "layer_" + std::to_string(layer));
    upper_.emplace_back(at, unit_settings(spec, spec.enc_cell), spec.dim_emb);
    residuals_.emplace_back(at, spec.dim_rnn, spec.dim_emb, spec.layer_normalization);
  }
  width_ = spec.dim_emb;
  if (!upper_.empty()) final_width_ = spec.dim_rnn;
}

Encoder::Result Encoder::operator()(Tape& tape, Var x, const Tensor& mask) const {
  const std::int64_t last = x->value.shape()[0] - 1;  // the mask carries a shorter sentence's state to here
  Var both, top;
  {
    const Var ahead = forward_(tape, x, {}, mask)[0];
    const Var back = backward_(tape, x, {}, mask, true)[0];
    both = ops::concat(tape, {ahead, back});
    if (upper_.empty()) top = ops::concat(tape, {ops::step(tape, ahead, last), ops::step(tape, back, 0)});
  }
  if (residuals_.empty()) return {ops::dropout(tape, both, dropout_), top};
  x = residuals_[0](tape, x, both, dropout_);
  both = {};
  if (upper_.empty()) return {x, top};
  for (std::size_t layer = 0; layer < upper_.size(); ++layer) {
    top = upper_[layer](tape, x, {}, mask)[0];
    x = residuals_[layer + 1](tape, x, top, dropout_);
  }
  return {x, ops::step(tape, top, last)};
}

void Encoder::freeze(const Context& context) const {
  forward_.freeze(context);
  backward_.freeze(context);
  for (const RecurrentLayer& layer : upper_) layer.freeze(context);
  for (const Residual& residual : residuals_) residual.freeze(context);
}

}  // namespace nmt
