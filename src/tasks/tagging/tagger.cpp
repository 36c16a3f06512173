#include "tasks/tagging/tagger.h"

#include "autograd/ops/linear.h"
#include "autograd/ops/losses.h"
#include "autograd/ops/plain.h"
#include "core/error.h"
#include "kernels/softmax_loss.h"
#include "model/training_tape.h"
#include "tasks/finite_scores.h"
#include "tasks/tagging/viterbi.h"
#include "tensor/copy.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace nmt {
namespace {

// [[I], [I]] for P.
std::vector<float> two_identities(std::int64_t n) {
  std::vector<float> values(static_cast<std::size_t>(2 * n * n), 0.0f);
  for (std::int64_t i = 0; i < 2 * n; ++i) values[static_cast<std::size_t>(i * n + i % n)] = 1.0f;
  return values;
}

UnitSettings character_settings(const ModelSpec& spec) {
  UnitSettings settings = unit_settings(spec, spec.enc_cell);
  settings.width = spec.tagging.dim_char_rnn;
  settings.state_dropout = 0;  // its masks belong to sentences
  settings.groups = 1;
  settings.rearrange = false;
  return settings;
}

}  // namespace

Batch make_tagging_batch(std::span<const Ids* const> words, std::span<const Ids* const> labels) {
  NMT_CHECK(!words.empty() && (labels.empty() || labels.size() == words.size()),
            "tagging batch: {} sentences, labels of {}", words.size(), labels.size());
  Batch batch;
  const std::size_t sentences = words.size();
  std::size_t steps = 0;
  for (const Ids* ids : words) steps = std::max(steps, ids->size());
  batch.sentences = batch.slice.whole = static_cast<int>(sentences);
  batch.source_steps = static_cast<int>(steps);
  batch.target_steps = labels.empty() ? 0 : static_cast<int>(steps);
  batch.lines.resize(sentences);
  std::iota(batch.lines.begin(), batch.lines.end(), 0);
  batch.source.assign(steps * sentences, 0);
  batch.source_mask.assign(steps * sentences, 0.0f);
  if (!labels.empty()) {
    batch.target_in.assign(steps * sentences, 0);
    batch.target_out.assign(steps * sentences, kernels::no_target);
    batch.target_mask.assign(steps * sentences, 0.0f);
  }
  for (std::size_t b = 0; b < sentences; ++b) {
    NMT_CHECK(!words[b]->empty() && (labels.empty() || labels[b]->size() == words[b]->size()),
              "tagging batch: a sentence without words or labels");
    for (std::size_t t = 0; t < words[b]->size(); ++t) {
      const std::size_t at = t * sentences + b;
      batch.source[at] = (*words[b])[t];
      batch.source_mask[at] = 1.0f;
      if (labels.empty()) continue;
      batch.target_out[at] = (*labels[b])[t];
      batch.target_mask[at] = 1.0f;
    }
    batch.source_tokens += static_cast<std::int64_t>(words[b]->size());
  }
  batch.target_tokens = labels.empty() ? 0 : batch.source_tokens;
  return batch;
}

Tagger::Tagger(const ModelSpec& spec, int words, int labels, const WordForms& forms,
               const Context& context, std::uint64_t seed, Weights weights)
    : spec_(spec), words_(words), labels_(labels), forms_(forms), context_(context) {
  const TaggingSpec& tagging = spec_.tagging;
  if (spec_.dim_emb < 1 || spec_.dim_rnn < 1 || spec_.enc_depth < 1)
    fail(ExitStatus::usage,
         "a tagger needs dim-emb, dim-rnn and enc-depth of at least 1, not {}, {}, {}",
         spec_.dim_emb, spec_.dim_rnn, spec_.enc_depth);
  NMT_CHECK(words_ > 0 && labels_ > 0, "a tagger of {} words and {} labels", words_, labels_);
  Rng rng(seed, 1);
  Context memory = context_;
  if (weights == Weights::none) memory.arena = nullptr;
  if (weights == Weights::unset) parameters_.leave_unset();
  using Role = Parameter::Role;
  const Builder top(memory, parameters_, rng, Initializer::of(spec_));
  const Builder all = Builder(top, "tagger"), tables = all.at(Role::embedding),
                layers = all.at(Role::encoder), upper = all.at(Role::decoder);
  word_table_ = &tables.add("embedding", {words_, spec_.dim_emb}, Builder::Init::embedding);
  std::int64_t width = spec_.dim_emb;
  if (tagging.dim_char_rnn > 0) {
    character_table_ =
        &tables.add("character_embedding", {WordForms::characters, tagging.dim_char_emb},
                    Builder::Init::embedding);
    characters_.emplace(Builder(layers, "characters"), character_settings(spec_),
                        tagging.dim_char_emb, false);
    width += characters_->width();
  }
  first_of_words_ = parameters_.all().size();
  const UnitSettings unit = unit_settings(spec_, spec_.enc_cell);
  for (int layer = 0; layer < spec_.enc_depth; ++layer) {
    const Builder at(layers, "layer_" + std::to_string(layer));
    if (tagging.network == TaggingNetwork::basic) {
      basic_.emplace_back(at, unit.at(layer, spec_.enc_depth), width);
      width = unit.width;
    } else {
      bidirectional_.emplace_back(at, unit.at(layer, spec_.enc_depth), width, false);
      width = bidirectional_.back().width();
    }
  }
  if (tagging.network == TaggingNetwork::dependent) {
    upper_forward_.emplace(Builder(upper, "upper_forward"), unit, width);
    upper_backward_.emplace(Builder(upper, "upper_backward"), unit, width);
    first_of_output_ = parameters_.all().size();
    forward_output_ = output(upper, "forward_output", unit.width);
    backward_output_ = output(upper, "backward_output", unit.width);
    pool_ = &upper.add("pool", {2 * labels_, labels_}, Builder::Init::glorot);
    upper.set(*pool_, two_identities(labels_));
  } else {
    first_of_output_ = parameters_.all().size();
    output_ = output(upper, "output", width);
  }
  if (tagging.crf)
    transitions_ = &upper.add("transitions", {labels_ + 2, labels_}, Builder::Init::zero);
}

Inventory Tagger::inventory() const {
  Inventory::Part tables{"embeddings", 0, 0, "", 0}, characters{"characters", 0, 0, "character", 0},
      encoder{"encoder", 0, 0, "word", 0}, output{"output", 0, 0, "word", 0};
  std::size_t i = 0;
  for (const Parameter& p : parameters_.all()) {
    Inventory::Part& part = p.role == Parameter::Role::embedding ? tables
                            : i < first_of_words_                ? characters
                            : i < first_of_output_               ? encoder
                                                                 : output;
    part.add(p);
    ++i;
  }
  return {{tables, characters, encoder, output}};
}

Tagger::OutputLayer Tagger::output(const Builder& builder, const std::string& name,
                                   std::int64_t width) const {
  return {&builder.add(name, {width, labels_}, Builder::Init::glorot),
          &builder.add(name + "_bias", {labels_}, Builder::Init::zero)};
}

// [T,B,E], and with characters [T,B,E+2C]. The layer over characters reads every distinct word of
// the batch once.
Var Tagger::inputs(Tape& tape, const Batch& batch) const {
  const std::int64_t t = batch.source_steps, b = batch.sentences;
  Ids ids, rows, distinct;
  std::unordered_map<std::int32_t, std::int32_t> row_of;
  for (const std::int32_t form : batch.source) {
    ids.push_back(forms_.id(form));
    const auto [entry, is_new] =
        row_of.try_emplace(form, static_cast<std::int32_t>(distinct.size()));
    if (is_new) distinct.push_back(form);
    rows.push_back(entry->second);
  }
  const Var embedded = ops::embedding(tape, *word_table_, ops::send_symbols(tape, ids, {t, b}));
  if (!characters_) {
    tape.milestone(static_cast<int>(Completed::encoder));
    return embedded;
  }
  const std::size_t n = distinct.size();
  std::size_t steps = 0;
  for (const std::int32_t form : distinct) steps = std::max(steps, forms_.symbols(form).size());
  Ids symbols(steps * n, 0), lengths(n);
  std::vector<float> mask(steps * n, 0.0f);
  for (std::size_t i = 0; i < n; ++i) {
    const std::span<const std::int32_t> of_word = forms_.symbols(distinct[i]);
    lengths[i] = static_cast<std::int32_t>(of_word.size());
    for (std::size_t c = 0; c < of_word.size(); ++c) {
      symbols[c * n + i] = of_word[c];
      mask[c * n + i] = 1.0f;
    }
  }
  const Shape shape{static_cast<std::int64_t>(steps), static_cast<std::int64_t>(n)};
  ops::PaddedSentences padded(upload(context_, mask, shape));
  padded.lengths = upload(context_, lengths, {shape[1]});
  padded.host_lengths = std::move(lengths);
  const Var characters =
      ops::embedding(tape, *character_table_, ops::send_symbols(tape, symbols, shape));
  tape.milestone(static_cast<int>(Completed::encoder));
  const Var of_words = (*characters_)(tape, characters, padded).final_state;
  return ops::concat(
      tape, {embedded, ops::gather_rows(tape, of_words, ops::send_symbols(tape, rows, {t, b}))});
}

Tagger::Scores Tagger::run(Tape& tape, const Batch& batch) const {
  const std::int64_t t = batch.source_steps, b = batch.sentences;
  ops::PaddedSentences sentences(upload(context_, batch.source_mask, {t, b}));
  sentences.host_lengths = source_lengths(batch);
  sentences.lengths = upload(context_, sentences.host_lengths, {b});
  const float p = static_cast<float>(spec_.dropout_rnn);
  const auto drop = [&](const Var& x) { return ops::dropout(tape, x, p); };
  Var h = ops::dropout(tape, inputs(tape, batch), static_cast<float>(spec_.dropout_emb));
  for (const RecurrentLayer& layer : basic_) h = drop(layer(tape, h, {}, sentences)[0]);
  for (const BidirectionalLayer& layer : bidirectional_) h = drop(layer(tape, h, sentences).states);
  tape.milestone(static_cast<int>(Completed::decoder));
  const auto project = [&](const Var& x, const OutputLayer& layer) {
    return ops::linear(tape, x, *layer.weight, layer.bias);
  };
  if (!upper_forward_) return {project(h, output_), {}, {}};
  Scores scores;
  scores.forward = project(drop((*upper_forward_)(tape, h, {}, sentences)[0]), forward_output_);
  scores.backward =
      project(drop((*upper_backward_)(tape, h, {}, sentences, true)[0]), backward_output_);
  scores.final = ops::linear(tape, ops::concat(tape, {scores.forward, scores.backward}), *pool_);
  return scores;
}

void Tagger::add_loss(Tape& tape, const Scores& scores, const Batch& batch, float smoothing,
                      const Tensor& sums) const {
  const std::int64_t t = batch.source_steps, b = batch.sentences;
  const Tensor targets = upload(context_, batch.target_out, {t, b});
  if (transitions_)
    ops::crf_loss(tape, scores.final, *transitions_, targets,
                  upload(context_, source_lengths(batch), {b}), sums);
  else
    ops::label_loss(tape, scores.final, targets, smoothing, sums);
  if (!scores.forward) return;
  const Tensor trained = sums.slice(1, 1);
  ops::label_loss(tape, scores.forward, targets, smoothing, trained);
  ops::label_loss(tape, scores.backward, targets, smoothing, trained);
}

void Tagger::accumulate_gradients(const Batch& batch, const TrainPass& pass, const Tensor& sums,
                                  const Listener& listener) {
  TrainingTape tape(context_, parameters_, pass, batch, spec_.dropout_variational, listener);
  add_loss(tape, run(tape, batch), batch, pass.label_smoothing, sums);
  tape.run_backward();
  TrainingTape::end_pass(parameters_);
}

BatchLoss Tagger::evaluate(const Batch& batch) {
  const Tensor sums = context_.empty({2}, Dtype::f64);
  clear<double>(context_, sums);
  Tape tape(context_, false);
  add_loss(tape, run(tape, batch), batch, 0.0f, sums);
  const std::vector<double> values = download<double>(context_, sums);
  return {values[0], values[1], batch.target_tokens};
}

std::vector<Ids> Tagger::tag(const Batch& batch) {
  Tape tape(context_, false);
  const std::vector<float> scores = download<float>(context_, run(tape, batch).final->value);
  std::vector<float> transitions;
  if (transitions_) transitions = download<float>(context_, transitions_->value);
  const std::vector<std::int32_t> lengths = source_lengths(batch);
  std::vector<Ids> labels;
  for (std::int64_t b = 0; b < batch.sentences; ++b) {
    for (std::int64_t t = 0; t < lengths[static_cast<std::size_t>(b)]; ++t)
      require_finite(
          {scores.data() + (t * batch.sentences + b) * labels_, static_cast<std::size_t>(labels_)});
    const LabelScores of_sentence{scores.data() + b * labels_, lengths[static_cast<std::size_t>(b)],
                                  std::int64_t{batch.sentences} * labels_, labels_};
    labels.push_back(transitions_ ? best_labels(of_sentence, transitions.data())
                                  : best_labels(of_sentence));
  }
  return labels;
}

}  // namespace nmt
