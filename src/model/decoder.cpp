#include "nmt/model/decoder.h"

namespace nmt {

using Init = Builder::Init;

Decoder::Decoder(const Builder& builder, const ModelSpec& spec, std::int64_t memory_width, std::int64_t final_width)
    : rnnsearch_(spec.type == "rnnsearch"),
      dropout_(static_cast<float>(spec.dropout_rnn)),
      dropout_readout_(static_cast<float>(spec.dropout_readout)) {
  const UnitSettings settings = unit_settings(spec, spec.dec_cell);
  const std::int64_t e = spec.dim_emb, h = spec.dim_rnn, m = memory_width;
  const std::int64_t space = spec.dim_attention > 0 ? spec.dim_attention : m;
  if (space % spec.heads != 0 || m % spec.heads != 0)
    fail(ExitStatus::usage, "heads: {} must divide the attention space {} and the memory's width {}", spec.heads, space, m);
  states_ = settings.unit->states;
  attention_.kind = spec.attention == "dot" ? kernels::AttentionKind::dot : kernels::AttentionKind::additive;
  attention_.heads = spec.heads;
  const Builder first(builder, "layer_0");
  memory_projection_ = &first.add("attention.memory_projection", {m, space}, Init::glorot);
  if (attention_.kind == kernels::AttentionKind::additive) attention_.v = &first.add("attention.v", {space, 1}, Init::glorot);
  if (spec.attention_query == "recurrent") {
    conditional_.emplace(first, settings, e, m, space, attention_);
  } else {
    first_.emplace(first, settings, e);
    query_ = &first.add("attention.query_projection", {h, space}, Init::glorot);
  }
  if (!rnnsearch_) {
    residuals_.emplace_back(first, h, e, spec.layer_normalization);
    for (int layer = 1; layer < spec.dec_depth; ++layer) {
      const Builder at(builder, "layer_" + std::to_string(layer));
      upper_.emplace_back(at, settings, e + m);
      residuals_.emplace_back(at, h, e, spec.layer_normalization);
    }
  }
  const int layers = rnnsearch_ ? 1 : spec.dec_depth;
  for (int layer = 0; layer < layers; ++layer) {
    for (int state = 0; state < states_; ++state) {
      const std::string name = "layer_" + std::to_string(layer) + ".initial_state_" + std::to_string(state);
      initial_.push_back(&builder.add(name, {final_width, h}, Init::glorot));
      initial_bias_.push_back(&builder.add(name + "_bias", {h}, Init::zero));
    }
  }
  readout_ = &builder.add("readout", {rnnsearch_ ? h + m + e : e + m, e}, Init::glorot);
  if (spec.layer_normalization) readout_normalization_ = Normalization(builder, "readout_norm", e);
  else readout_bias_ = &builder.add("readout_bias", {e}, Init::zero);
}

ops::Memory Decoder::remember(Tape& tape, const Var& annotations, const Tensor& lengths) const {
  return {annotations, ops::linear(tape, annotations, *memory_projection_), lengths};
}

DecoderState Decoder::start(Tape& tape, const Var& final_state) const {
  DecoderState state(initial_.size() / states_);
  for (std::size_t i = 0; i < initial_.size(); ++i) {
    Var mapped = ops::linear(tape, final_state, *initial_[i], initial_bias_[i]);
    state[i / states_].push_back(rnnsearch_ ? ops::tanh(tape, std::move(mapped)) : mapped);
  }
  return state;
}

Decoder::Result Decoder::operator()(Tape& tape, const Var& y, const ops::Memory& memory, const DecoderState& state,
                                    const Tensor& sentence) const {
  Result result;
  const std::int64_t last = y->value.shape()[0] - 1;
  const auto keep_last = [&](const std::vector<Var>& states) {
    std::vector<Var>& to = result.state.emplace_back();
    if (tape.recording()) return;  // training runs all steps at once
    for (const Var& s : states) to.push_back(ops::step(tape, s, last));
  };
  Var h;
  ops::Attended attended;
  if (conditional_) {
    ops::ConditionalResult out = (*conditional_)(tape, y, memory, state[0], sentence);
    h = out.states[0];
    attended = out.attended;
    keep_last(out.states);
  } else {
    const std::vector<Var> states = (*first_)(tape, y, state[0], {});
    h = states[0];
    attended = ops::attention(tape, attention_, memory, ops::linear(tape, h, *query_), sentence);
    keep_last(states);
  }
  result.weights = attended.weights;
  const Var& c = attended.context;
  if (rnnsearch_) {
    result.features = ops::concat(tape, {ops::dropout(tape, h, dropout_), c, y});
    return result;
  }
  Var x = residuals_[0](tape, y, h, dropout_);
  for (std::size_t layer = 0; layer < upper_.size(); ++layer) {
    const std::vector<Var> states = upper_[layer](tape, ops::concat(tape, {x, c}), state[layer + 1], {});
    keep_last(states);
    x = residuals_[layer + 1](tape, x, states[0], dropout_);
  }
  result.features = ops::concat(tape, {x, c});
  return result;
}

Var Decoder::readout(Tape& tape, const Var& features) const {
  Var out = ops::linear(tape, features, *readout_, readout_bias_);
  if (readout_normalization_) out = ops::layer_norm(tape, std::move(out), *readout_normalization_.gain, *readout_normalization_.bias);
  return ops::dropout(tape, ops::tanh(tape, std::move(out)), dropout_readout_);
}

void Decoder::freeze(const Context& context) const {
  for (Parameter* p : initial_) ops::freeze(context, *p);
  ops::freeze(context, *memory_projection_);
  if (query_) ops::freeze(context, *query_);
  if (conditional_) conditional_->freeze(context);
  if (first_) first_->freeze(context);
  for (const RecurrentLayer& layer : upper_) layer.freeze(context);
  for (const Residual& residual : residuals_) residual.freeze(context);
  ops::freeze(context, *readout_);
}

}  // namespace nmt
