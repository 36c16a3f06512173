#pragma once

#include "autograd/ops/attention.h"
#include "model/block/sublayer.h"
#include "model/decoder.h"
#include "nn/cross_attention.h"
#include "nn/feed_forward.h"
#include "nn/recurrent/gated_unit.h"

#include <deque>
#include <optional>

namespace nmt {

/// A layer of BlockDecoder: a gated unit, attention over the source, then a feed-forward layer if
/// there is one.
class DecoderBlock {
 public:
  DecoderBlock(const Builder& builder, const ModelSpec& spec, std::int64_t memory_width, int layer);
  const CrossAttention& attention() const { return attention_; }
  struct Result {
    Var x;                    ///< [T,B,E]
    std::vector<Var> states;  ///< as GatedUnit::Result
    Tensor weights;           ///< [T,B,heads,S]
  };
  Result operator()(Tape& tape, Var x, const ops::Memory& memory, const std::vector<Var>& initial,
                    const Tensor& sentence, std::int64_t position, float dropout) const;
  std::int64_t saved_floats(std::int64_t source_tokens, bool drops) const;
  void freeze(const Context& context) const;

 private:
  Sublayer unit_sum_;
  GatedUnit unit_;
  Sublayer attention_sum_;
  CrossAttention attention_;
  std::optional<Sublayer> inner_;
  std::optional<FeedForward> feed_forward_;
};

/// Pre-norm blocks (BlockSpec). The readout is a layer normalization; layers have no initial state.
class BlockDecoder : public Decoder {
 public:
  BlockDecoder(const Builder& builder, const ModelSpec& spec, std::int64_t memory_width);
  SourceMemory remember(Tape& tape, const Var& annotations, const Tensor& lengths) const override;
  DecoderState start(Tape& tape, const Var& final_state) const override;
  Result operator()(Tape& tape, const Var& y, const SourceMemory& memory, const DecoderState& state,
                    const Tensor& sentence) const override;
  Var readout(Tape& tape, const Var& features, const Tensor& rows = {}) const override;
  std::int64_t saved_floats(std::int64_t source_tokens) const override;
  std::int64_t saved_source_floats() const override;
  void freeze(const Context& context) const override;

 private:
  UnitSettings settings_;
  std::deque<DecoderBlock> layers_;
  Normalization norm_;
  float dropout_, dropout_readout_;
  std::int64_t width_;
};

}  // namespace nmt
