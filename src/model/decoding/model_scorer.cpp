#include "model/decoding/model_scorer.h"

#include "model/decoding/model_decoding.h"
#include "model/model_impl.h"

#include <utility>

namespace nmt {

ModelScorer::ModelScorer(Model& model, std::int32_t bos, std::int32_t eos)
    : model_(model), bos_(bos), eos_(eos) {
  NMT_CHECK(model.impl_->frozen, "only a frozen model can be searched");
}

ModelScorer::ModelScorer(const Model& frozen, const Context& context, std::int32_t bos,
                         std::int32_t eos)
    : own_(std::make_unique<Model>(frozen, context)), model_(*own_), bos_(bos), eos_(eos) {}

int ModelScorer::vocabulary() const {
  return model_.target_vocabulary();
}

std::unique_ptr<Decoding> ModelScorer::begin(std::span<const std::vector<std::int32_t>> sources,
                                             bool want_attention) {
  NMT_CHECK(!sources.empty(), "no sentences to decode");
  if (want_attention && model_.spec().attention == AttentionType::none)
    fail(ExitStatus::usage,
         "attention none: the model has no attention, which alignment and coverage-penalty read");
  Model::Impl& m = *model_.impl_;
  Tape tape(m.context, false);
  const Model::Impl::Encoded encoded = m.encode_in_parts(tape, sources, bos_, eos_);
  DecoderState state = m.decoder->start(tape, encoded.final_state);
  const DecodingParts parts{*m.decoder,
                            [&m](Tape& at, const Tensor& ids) { return m.embed_target(at, {ids}); },
                            *m.output_table, *m.output_bias, m.spec.alignment_head};
  return start_decoding(m.context, parts, encoded.memory, std::move(state), want_attention);
}

}  // namespace nmt
