#include "model/block/block_encoder.h"

#include "autograd/ops/attention.h"

namespace nmt {
namespace {

UnitDirection direction_of(const BlockSpec& block, int layer) {
  if (block.encoder_directions == EncoderDirections::joined) return UnitDirection::both;
  return layer % 2 == 0 ? UnitDirection::forward : UnitDirection::backward;
}

}  // namespace

EncoderBlock::EncoderBlock(const Builder& builder, const ModelSpec& spec, int layer)
    : mixer_(builder, "mixer", spec.dim_emb) {
  const BlockSpec& block = spec.block;
  const float scale = depth_scale(layer);
  if (block.encoder_mixer == EncoderMixer::attention) {
    rotary_ = block.encoder_positions == EncoderPositions::rotary;
    attention_.emplace(Builder(builder, "self_attention"), spec.dim_emb, block.encoder_heads,
                       rotary_, scale);
  } else {
    unit_.emplace(
        Builder(builder, "unit"),
        GatedUnit::Settings{unit_settings(spec, spec.enc_cell).at(layer, spec.enc_depth),
                            block.gate_branch, block.unit_projection, direction_of(block, layer)},
        spec.dim_emb, scale);
  }
  if (block.feed_forward == FeedForwardKind::none) return;
  inner_.emplace(builder, "feed_forward", spec.dim_emb);
  feed_forward_.emplace(Builder(builder, "feed_forward"), block.feed_forward, spec.dim_emb,
                        feed_forward_width(spec), scale);
}

Var EncoderBlock::operator()(Tape& tape, Var x, const Tensor& turns,
                             const ops::PaddedSentences& sentences, float dropout) const {
  Var f = mixer_.normalize(tape, x);
  f = attention_ ? (*attention_)(tape, f, turns, sentences.lengths)
                 : (*unit_)(tape, f, {}, sentences).output;
  x = Sublayer::add(tape, std::move(x), std::move(f), dropout);
  if (!feed_forward_) return x;
  f = (*feed_forward_)(tape, inner_->normalize(tape, x));
  return Sublayer::add(tape, std::move(x), std::move(f), dropout);
}

std::int64_t EncoderBlock::saved_floats(std::int64_t source_tokens, bool drops) const {
  std::int64_t sum = mixer_.saved_floats(drops) +
                     (attention_ ? attention_->saved_floats(source_tokens) : unit_->saved_floats());
  if (feed_forward_) sum += inner_->saved_floats(drops) + feed_forward_->saved_floats();
  return sum;
}

void EncoderBlock::freeze(const Context& context) const {
  if (unit_) unit_->freeze(context);
  if (attention_) attention_->freeze(context);
  if (feed_forward_) feed_forward_->freeze(context, false);
}

BlockEncoder::BlockEncoder(const Builder& builder, const ModelSpec& spec)
    : dropout_(static_cast<float>(spec.dropout_rnn)), width_(spec.dim_emb) {
  for (int layer = 0; layer < spec.enc_depth; ++layer)
    layers_.emplace_back(Builder(builder, "layer_" + std::to_string(layer)), spec, layer);
  norm_ = Normalization(builder, "norm", width_);
}

Encoder::Result BlockEncoder::operator()(Tape& tape, Var x,
                                         const ops::PaddedSentences& sentences) const {
  const std::int64_t turned = layers_.front().turned();
  const Tensor turns =
      turned > 0 ? ops::turns(tape.context(), x->value.shape()[0], turned) : Tensor();
  for (const EncoderBlock& layer : layers_)
    x = layer(tape, std::move(x), turns, sentences, dropout_);
  const Var annotations = ops::layer_norm(tape, std::move(x), *norm_.gain, *norm_.bias);
  return {annotations, ops::step(tape, annotations, 0)};
}

std::int64_t BlockEncoder::saved_floats(std::int64_t source_tokens) const {
  std::int64_t sum = width_;
  for (const EncoderBlock& layer : layers_) sum += layer.saved_floats(source_tokens, dropout_ > 0);
  return sum;
}

void BlockEncoder::freeze(const Context& context) const {
  for (const EncoderBlock& layer : layers_) layer.freeze(context);
}

}  // namespace nmt
