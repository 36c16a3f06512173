#include "nmt/model/model_scorer.h"

#include <algorithm>
#include <functional>

#include "model_impl.h"
#include "nmt/kernels/softmax_loss.h"

namespace nmt {
namespace {

using TargetEmbedding = std::function<Var(Tape&, const Tensor&)>;

// One batch of sources under search: the shared memory, and the states of the live hypotheses.
class ModelDecoding : public Decoding {
 public:
  ModelDecoding(const Context& context, const Decoder& decoder, TargetEmbedding embed, Parameter& table, Parameter& bias, ops::Memory memory,
                DecoderState state, bool want_attention)
      : context_(context), decoder_(decoder), embed_(std::move(embed)), table_(table), bias_(bias), memory_(std::move(memory)),
        state_(std::move(state)), want_attention_(want_attention) {
    sentence_.resize(memory_.lengths.elements());
    for (std::size_t b = 0; b < sentence_.size(); ++b) sentence_[b] = static_cast<std::int32_t>(b);
  }

  NextTokens advance(std::span<const std::int32_t> parents, std::span<const std::int32_t> tokens) override {
    const std::int64_t rows = static_cast<std::int64_t>(parents.size());
    NMT_CHECK(parents.size() == tokens.size() && rows > 0, "{} parents for {} tokens", parents.size(), tokens.size());
    next_sentence_.clear();
    for (const std::int32_t parent : parents) {
      NMT_CHECK(parent >= 0 && parent < static_cast<std::int32_t>(sentence_.size()), "no hypothesis {} of {}", parent, sentence_.size());
      next_sentence_.push_back(sentence_[parent]);
    }
    sentence_.swap(next_sentence_);
    logits_ = normalizer_ = attention_ = {};  // the last step's make room for this one's
    Tape tape(context_, false);
    const Tensor parent_rows = host(parents, {rows}), ids = host(tokens, {1, rows});
    for (std::vector<Var>& layer : state_)
      for (Var& state : layer) state = ops::select_rows(tape, state, parent_rows);
    Decoder::Result out = decoder_(tape, embed_(tape, ids), memory_, state_, host(std::span<const std::int32_t>(sentence_), {rows}));
    state_ = std::move(out.state);
    const Shape& features = out.features->value.shape();
    const Var flat = tape.constant(out.features->value.reshape({rows, features[-1]}));
    logits_ = ops::logits(tape, decoder_.readout(tape, flat), table_, &bias_);
    normalizer_ = context_.empty({rows});
    const std::int64_t vocabulary = logits_.width();
    dispatch(context_, [&](const auto& backend) {
      kernels::log_sum_exp(backend, rows, vocabulary, logits_.f32(), normalizer_.f32());
    });
    NextTokens next;
    next.rows = static_cast<int>(rows);
    next.vocabulary = static_cast<int>(vocabulary);
    next.logits = logits_.f32();
    next.log_normalizer = normalizer_.f32();
    if (want_attention_) next.attention = mean_over_heads(out.weights, rows);
    next.source_steps = static_cast<int>(out.weights.shape()[3]);
    return next;
  }

 private:
  Tensor host(std::span<const std::int32_t> values, Shape shape) const {
    Tensor tensor = context_.empty(shape, Dtype::i32);
    std::copy(values.begin(), values.end(), tensor.data<std::int32_t>());
    return tensor;
  }

  const float* mean_over_heads(const Tensor& weights, std::int64_t rows) {
    const std::int64_t heads = weights.shape()[2], steps = weights.shape()[3];
    attention_ = context_.empty({rows, steps});
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t s = 0; s < steps; ++s) {
        float sum = 0;
        for (std::int64_t head = 0; head < heads; ++head) sum += weights.f32()[(r * heads + head) * steps + s];
        attention_.f32()[r * steps + s] = sum / static_cast<float>(heads);
      }
    return attention_.f32();
  }

  Context context_;
  const Decoder& decoder_;
  TargetEmbedding embed_;
  Parameter& table_;
  Parameter& bias_;
  ops::Memory memory_;
  DecoderState state_;
  bool want_attention_;
  std::vector<std::int32_t> sentence_, next_sentence_;  // the memory's sentence of each row
  Tensor logits_, normalizer_, attention_;
};

}  // namespace

ModelScorer::ModelScorer(Model& model, std::int32_t bos, std::int32_t eos) : model_(model), bos_(bos), eos_(eos) {
  NMT_CHECK(model.impl_->frozen, "only a frozen model can be searched");
}

int ModelScorer::vocabulary() const { return model_.target_vocabulary(); }

std::unique_ptr<Decoding> ModelScorer::begin(std::span<const std::vector<std::int32_t>> sources, bool want_attention) {
  NMT_CHECK(!sources.empty(), "no sentences to decode");
  Model::Impl& m = *model_.impl_;
  std::vector<const Ids*> pointers;
  std::vector<std::int32_t> lengths;
  for (const Ids& source : sources) {
    pointers.push_back(&source);
    lengths.push_back(static_cast<std::int32_t>(source.size()) + 1);  // with </s>
  }
  const Batch batch = make_batch(pointers, {}, bos_, eos_);
  Tape tape(m.context, false);
  const std::int64_t b = batch.sentences, s = batch.source_steps;
  const Model::Impl::Encoded encoded =
      m.encode(tape, upload(m.context, batch.source, {s, b}), upload(m.context, batch.source_mask, {s, b}), upload(m.context, lengths, {b}));
  DecoderState state = m.decoder->start(tape, encoded.final_state);
  return std::make_unique<ModelDecoding>(
      m.context, *m.decoder, [&m](Tape& at, const Tensor& ids) { return m.embed_target(at, ids); }, *m.output_table, *m.output_bias,
      encoded.memory, std::move(state), want_attention);
}

}  // namespace nmt
