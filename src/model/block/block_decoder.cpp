#include "model/block/block_decoder.h"

namespace nmt {
namespace {

// Groups need not begin in the first layer (Gao et al., NAACL 2018, footnote 2).
UnitSettings settings_of(const ModelSpec& spec, int layer) {
  UnitSettings settings = unit_settings(spec, spec.dec_cell).at(layer, spec.dec_depth);
  if (spec.dense_first_decoder_layer && layer == 0) {
    settings.groups = 1;
    settings.rearrange = false;
  }
  return settings;
}

CrossAttention::Settings attention_of(const ModelSpec& spec) {
  return {spec.attention == AttentionType::dot ? kernels::AttentionKind::dot
                                               : kernels::AttentionKind::additive,
          spec.heads, spec.dim_attention > 0 ? spec.dim_attention : spec.dim_emb};
}

}  // namespace

DecoderBlock::DecoderBlock(const Builder& builder, const ModelSpec& spec, std::int64_t memory_width,
                           int layer)
    : unit_sum_(builder, "unit", spec.dim_emb),
      unit_(Builder(builder, "unit"),
            {settings_of(spec, layer), spec.block.gate_branch, spec.block.unit_projection},
            spec.dim_emb, depth_scale(layer)),
      attention_sum_(builder, "attention", spec.dim_emb),
      attention_(Builder(builder, "attention"), attention_of(spec), spec.dim_emb, memory_width,
                 depth_scale(layer)) {
  const FeedForwardKind kind = spec.block.decoder_feed_forward.value_or(spec.block.feed_forward);
  if (kind == FeedForwardKind::none) return;
  inner_.emplace(builder, "feed_forward", spec.dim_emb);
  feed_forward_.emplace(Builder(builder, "feed_forward"), kind, spec.dim_emb,
                        feed_forward_width(spec), depth_scale(layer));
}

DecoderBlock::Result DecoderBlock::operator()(Tape& tape, Var x, const ops::Memory& memory,
                                              const std::vector<Var>& initial,
                                              const Tensor& sentence, std::int64_t position,
                                              float dropout) const {
  GatedUnit::Result unit = unit_(tape, unit_sum_.normalize(tape, x), initial, {}, position);
  x = Sublayer::add(tape, std::move(x), std::move(unit.output), dropout);
  ops::Attended attended = attention_(tape, attention_sum_.normalize(tape, x), memory, sentence);
  x = Sublayer::add(tape, std::move(x), std::move(attended.context), dropout);
  if (feed_forward_) {
    Var f = (*feed_forward_)(tape, inner_->normalize(tape, x));
    x = Sublayer::add(tape, std::move(x), std::move(f), dropout);
  }
  return {std::move(x), std::move(unit.states), std::move(attended.weights)};
}

std::int64_t DecoderBlock::saved_floats(std::int64_t source_tokens, bool drops) const {
  std::int64_t sum = unit_sum_.saved_floats(drops) + unit_.saved_floats() +
                     attention_sum_.saved_floats(drops) + attention_.saved_floats(source_tokens);
  if (feed_forward_) sum += inner_->saved_floats(drops) + feed_forward_->saved_floats();
  return sum;
}

void DecoderBlock::freeze(const Context& context) const {
  unit_.freeze(context);
  attention_.freeze(context);
  if (feed_forward_) feed_forward_->freeze(context, true);
}

BlockDecoder::BlockDecoder(const Builder& builder, const ModelSpec& spec, std::int64_t memory_width)
    : settings_(unit_settings(spec, spec.dec_cell)),
      dropout_(static_cast<float>(spec.dropout_rnn)),
      dropout_readout_(static_cast<float>(spec.dropout_readout)),
      width_(spec.dim_emb) {
  for (int layer = 0; layer < spec.dec_depth; ++layer)
    layers_.emplace_back(Builder(builder, "layer_" + std::to_string(layer)), spec, memory_width,
                         layer);
  norm_ = Normalization(builder.at(Parameter::Role::readout), "norm", width_);
}

SourceMemory BlockDecoder::remember(Tape& tape, const Var& annotations,
                                    const Tensor& lengths) const {
  SourceMemory memory;
  for (const DecoderBlock& layer : layers_)
    memory.push_back(layer.attention().remember(tape, annotations, lengths));
  return memory;
}

DecoderState BlockDecoder::start(Tape& tape, const Var& final_state) const {
  DecoderState start(layers_.size());
  for (std::vector<Var>& states : start)
    states = start_states(tape, settings_, final_state->value.rows());
  return start;
}

Decoder::Result BlockDecoder::operator()(Tape& tape, const Var& y, const SourceMemory& memory,
                                         const DecoderState& state, const Tensor& sentence) const {
  Result result;
  if (settings_.unit->position_vectors > 0)
    result.state.position = state.position + y->value.shape()[0];
  Var x = y;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    DecoderBlock::Result out =
        layers_[i](tape, std::move(x), memory[i], state[i], sentence, state.position, dropout_);
    x = std::move(out.x);
    result.weights = std::move(out.weights);
    std::vector<Var>& kept = result.state.emplace_back();
    if (!tape.recording())  // training runs all steps at once
      for (const Var& s : out.states) kept.push_back(ops::step(tape, s, s->value.shape()[0] - 1));
  }
  result.features = x;
  return result;
}

Var BlockDecoder::readout(Tape& tape, const Var& features, const Tensor& rows) const {
  return ops::dropout(tape, ops::layer_norm(tape, features, *norm_.gain, *norm_.bias),
                      dropout_readout_, rows);
}

std::int64_t BlockDecoder::saved_floats(std::int64_t source_tokens) const {
  // The features of all positions and of the real tokens; their normalization; two gradients when
  // the backward pass begins.
  std::int64_t sum = (1 + 1 + 1 + (dropout_readout_ > 0 ? 1 : 0) + 2) * width_;
  for (const DecoderBlock& layer : layers_) sum += layer.saved_floats(source_tokens, dropout_ > 0);
  return sum;
}

std::int64_t BlockDecoder::saved_source_floats() const {
  std::int64_t sum = 0;
  for (const DecoderBlock& layer : layers_) sum += layer.attention().saved_source_floats();
  return sum;
}

void BlockDecoder::freeze(const Context& context) const {
  for (const DecoderBlock& layer : layers_) layer.freeze(context);
}

}  // namespace nmt
