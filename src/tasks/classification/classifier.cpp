#include "tasks/classification/classifier.h"

#include "autograd/ops/attention.h"
#include "autograd/ops/linear.h"
#include "autograd/ops/losses.h"
#include "autograd/ops/plain.h"
#include "core/error.h"
#include "model/training_tape.h"
#include "tasks/finite_scores.h"
#include "tensor/copy.h"

#include <algorithm>
#include <numeric>

namespace nmt {
Batch make_classification_batch(std::span<const Ids* const> texts,
                                std::span<const std::int32_t> labels) {
  NMT_CHECK(!texts.empty() && (labels.empty() || labels.size() == texts.size()),
            "classification batch: {} texts, {} labels", texts.size(), labels.size());
  Batch batch;
  const std::size_t count = texts.size();
  std::size_t steps = 0;
  for (const Ids* ids : texts) steps = std::max(steps, ids->size());
  batch.sentences = batch.slice.whole = static_cast<int>(count);
  batch.source_steps = static_cast<int>(steps);
  batch.lines.resize(count);
  std::iota(batch.lines.begin(), batch.lines.end(), 0);
  batch.source.assign(steps * count, 0);
  batch.source_mask.assign(steps * count, 0.0f);
  for (std::size_t b = 0; b < count; ++b) {
    NMT_CHECK(!texts[b]->empty(), "classification batch: a text without tokens");
    for (std::size_t t = 0; t < texts[b]->size(); ++t) {
      batch.source[t * count + b] = (*texts[b])[t];
      batch.source_mask[t * count + b] = 1.0f;
    }
    batch.source_tokens += static_cast<std::int64_t>(texts[b]->size());
  }
  if (labels.empty()) return batch;
  batch.target_steps = 1;
  batch.target_in.assign(count, 0);
  batch.target_out.assign(labels.begin(), labels.end());
  batch.target_mask.assign(count, 1.0f);
  batch.target_tokens = static_cast<std::int64_t>(count);
  return batch;
}

Classifier::Classifier(const ModelSpec& spec, int vocabulary, int labels, const Context& context,
                       std::uint64_t seed, Weights weights)
    : spec_(spec), labels_(labels), context_(context) {
  if (spec_.dim_emb < 1 || spec_.dim_rnn < 1 || spec_.enc_depth < 1)
    fail(ExitStatus::usage,
         "a classifier needs dim-emb, dim-rnn and enc-depth of at least 1, not {}, {}, {}",
         spec_.dim_emb, spec_.dim_rnn, spec_.enc_depth);
  NMT_CHECK(vocabulary > 0 && labels_ > 0, "a classifier of {} symbols and {} labels", vocabulary,
            labels_);
  Rng rng(seed, 1);
  Context memory = context_;
  if (weights == Weights::none) memory.arena = nullptr;
  if (weights == Weights::unset) parameters_.leave_unset();
  using Role = Parameter::Role;
  const Builder top(memory, parameters_, rng, Initializer::of(spec_));
  const Builder all(top, "classifier");
  const Builder layers = all.at(Role::encoder), upper = all.at(Role::decoder);
  table_ = &all.at(Role::embedding)
                .add("embedding", {vocabulary, spec_.dim_emb}, Builder::Init::embedding);
  const UnitSettings unit = unit_settings(spec_, spec_.enc_cell);
  std::int64_t width = spec_.dim_emb;
  for (int layer = 0; layer < spec_.enc_depth; ++layer) {
    layers_.emplace_back(Builder(layers, "layer_" + std::to_string(layer)),
                         unit.at(layer, spec_.enc_depth), width, false);
    width = layers_.back().width();
  }
  const std::int64_t space = spec_.dim_attention > 0 ? spec_.dim_attention : width;
  key_ = &upper.add("pooling_key", {width, space}, Builder::Init::glorot);
  query_ = &upper.add("pooling_query", {1, space}, Builder::Init::zero);
  v_ = &upper.add("pooling_v", {space}, Builder::Init::embedding);
  output_ = &upper.add("output", {width, labels_}, Builder::Init::glorot);
  output_bias_ = &upper.add("output_bias", {labels_}, Builder::Init::zero);
}

Inventory Classifier::inventory() const {
  Inventory::Part tables{"embeddings", 0, 0, "", 0}, layers{"encoder", 0, 0, "token", 0},
      pooling{"pooling", 0, 0, "token", 0}, output{"output", 0, 0, "text", 0};
  for (const Parameter& p : parameters_.all()) {
    Inventory::Part& part = p.role == Parameter::Role::embedding  ? tables
                            : p.role == Parameter::Role::encoder  ? layers
                            : &p == output_ || &p == output_bias_ ? output
                                                                  : pooling;
    part.add(p);
  }
  return {{tables, layers, pooling, output}};
}

Var Classifier::run(Tape& tape, const Batch& batch) const {
  const std::int64_t s = batch.source_steps, b = batch.sentences;
  ops::PaddedSentences texts(upload(context_, batch.source_mask, {s, b}));
  texts.host_lengths = source_lengths(batch);
  texts.lengths = upload(context_, texts.host_lengths, {b});
  const float p = static_cast<float>(spec_.dropout_rnn);
  Var h = ops::dropout(tape,
                       ops::embedding(tape, *table_, ops::send_symbols(tape, batch.source, {s, b})),
                       static_cast<float>(spec_.dropout_emb));
  tape.milestone(static_cast<int>(Completed::encoder));
  for (const BidirectionalLayer& layer : layers_)
    h = ops::dropout(tape, layer(tape, h, texts).states, p);
  tape.milestone(static_cast<int>(Completed::decoder));
  const Var ones = tape.constant(
      upload(context_, std::vector<float>(static_cast<std::size_t>(b), 1.0f), {1, b, 1}));
  const ops::AttentionShape shape{kernels::AttentionKind::additive, 1, v_, nullptr};
  const ops::Memory memory =
      ops::remember(tape, shape, h, ops::linear(tape, h, *key_), texts.lengths);
  const Var pooled =
      ops::attention(tape, shape, memory, ops::linear(tape, ones, *query_), {}).context;
  return ops::linear(tape, ops::dropout(tape, pooled, p), *output_, output_bias_);
}

void Classifier::accumulate_gradients(const Batch& batch, const TrainPass& pass, const Tensor& sums,
                                      const Listener& listener) {
  TrainingTape tape(context_, parameters_, pass, batch, spec_.dropout_variational, listener);
  ops::label_loss(tape, run(tape, batch), upload(context_, batch.target_out, {batch.sentences}),
                  pass.label_smoothing, sums);
  tape.run_backward();
  TrainingTape::end_pass(parameters_);
}

BatchLoss Classifier::evaluate(const Batch& batch) {
  const Tensor sums = context_.empty({2}, Dtype::f64);
  clear<double>(context_, sums);
  Tape tape(context_, false);
  ops::label_loss(tape, run(tape, batch), upload(context_, batch.target_out, {batch.sentences}),
                  0.0f, sums);
  const std::vector<double> values = download<double>(context_, sums);
  return {values[0], values[1], batch.target_tokens};
}

std::vector<std::int32_t> Classifier::classify(const Batch& batch) {
  Tape tape(context_, false);
  const std::vector<float> logits = download<float>(context_, run(tape, batch)->value);
  require_finite(logits);
  std::vector<std::int32_t> labels;
  for (auto row = logits.begin(); row != logits.end(); row += labels_)
    labels.push_back(static_cast<std::int32_t>(std::max_element(row, row + labels_) - row));
  return labels;
}

}  // namespace nmt
