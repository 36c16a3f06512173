#pragma once

#include "autograd/ops/recurrent.h"
#include "model/block/sublayer.h"
#include "model/encoder.h"
#include "nn/feed_forward.h"
#include "nn/recurrent/gated_unit.h"
#include "nn/self_attention.h"

#include <deque>
#include <optional>

namespace nmt {

/// A layer of BlockEncoder: a gated unit or self-attention, then a feed-forward layer.
class EncoderBlock {
 public:
  EncoderBlock(const Builder& builder, const ModelSpec& spec, int layer);
  /// x [S,B,E] -> [S,B,E]; turns: as nmt::SelfAttention.
  Var operator()(Tape& tape, Var x, const Tensor& turns, const ops::PaddedSentences& sentences,
                 float dropout) const;
  /// Channels of a head that turns rotate; 0 without rotary positions.
  std::int64_t turned() const { return rotary_ ? attention_->size() : 0; }
  std::int64_t saved_floats(std::int64_t source_tokens, bool drops) const;
  void freeze(const Context& context) const;

 private:
  Sublayer mixer_;
  std::optional<GatedUnit> unit_;
  std::optional<SelfAttention> attention_;
  std::optional<Sublayer> inner_;
  std::optional<FeedForward> feed_forward_;
  bool rotary_ = false;
};

/// Pre-norm blocks (BlockSpec) with a layer normalization after the last. Annotations have width E;
/// the final state is that of the first position and unused, since the decoder starts from zero.
class BlockEncoder : public Encoder {
 public:
  BlockEncoder(const Builder& builder, const ModelSpec& spec);
  Result operator()(Tape& tape, Var x, const ops::PaddedSentences& sentences) const override;
  std::int64_t width() const override { return width_; }
  std::int64_t final_width() const override { return width_; }
  std::int64_t saved_floats(std::int64_t source_tokens) const override;
  void freeze(const Context& context) const override;

 private:
  std::deque<EncoderBlock> layers_;
  Normalization norm_;
  float dropout_;
  std::int64_t width_;
};

}  // namespace nmt
