#include "model/model.h"

#include "autograd/ops/attention.h"
#include "autograd/ops/linear.h"
#include "autograd/ops/losses.h"
#include "autograd/ops/plain.h"
#include "autograd/ops/recurrent.h"
#include "data/alignment/batch_links.h"
#include "data/round_shape.h"
#include "kernels/pointwise.h"
#include "kernels/softmax_loss.h"
#include "model/check.h"
#include "model/model_impl.h"
#include "model/training_tape.h"
#include "tensor/repeat.h"

#include <algorithm>
#include <cmath>

namespace nmt {
namespace {

// The sums of a loss (Trainable::accumulate_gradients) on the device.
Tensor no_loss(const Context& context) {
  Tensor sums = context.empty({3}, Dtype::f64);
  clear<double>(context, sums);
  return sums;
}

BatchLoss read(const Context& context, const Tensor& sums, const Batch& batch) {
  const std::vector<double> values = download<double>(context, sums);
  return {values[0], values[1], batch.target_tokens, values[2]};
}

// The links of a batch with guided alignment; none without. Where passes are replayed, the number
// of sources is rounded up to halves of the rows.
LinkedRows links_of(const Batch& batch, const TrainPass& pass, bool rounds) {
  const auto* links = dynamic_cast<const BatchLinks*>(batch.extra.get());
  if (!links || pass.alignment_weight <= 0) return {};
  LinkedRows rows = linked_rows(*links, batch.target_steps, batch.sentences);
  const std::size_t part = rounds ? (rows.offsets.size() + 1) / 2 : 1;
  rows.sources.resize(std::max((rows.sources.size() + part - 1) / part, std::size_t{1}) * part);
  return rows;
}

}  // namespace

Model::Impl::Impl(const ModelSpec& the_spec, int source_size, int target_size,
                  const Context& the_context, std::uint64_t seed, Weights weights)
    : spec(the_spec),
      source_vocabulary(source_size),
      target_vocabulary(target_size),
      context(the_context) {
  check_model(spec);
  const bool shared = spec.tied_embeddings_src || spec.tied_embeddings_all;
  if (shared && source_size != target_size)
    fail(ExitStatus::usage,
         "tied-embeddings-{}: needs one joint vocabulary, not {} source and {} target symbols",
         spec.tied_embeddings_all ? "all" : "src", source_size, target_size);
  Rng rng(seed, 1);
  Context memory = context;
  if (weights == Weights::none) memory.arena = nullptr;
  if (weights == Weights::unset) parameters.leave_unset();
  const Builder builder(memory, parameters, rng, Initializer::of(spec));
  const std::int64_t e = spec.dim_emb;
  using Role = Parameter::Role;
  const Builder tables = builder.at(Role::embedding), softmax = builder.at(Role::softmax);
  target_table = &tables.add("decoder.embedding", {target_size, e}, Builder::Init::embedding);
  source_table = shared
                     ? target_table
                     : &tables.add("encoder.embedding", {source_size, e}, Builder::Init::embedding);
  output_table = spec.tied_embeddings || spec.tied_embeddings_all
                     ? target_table
                     : &softmax.add("decoder.output", {target_size, e}, Builder::Init::embedding);
  output_bias = &softmax.add("decoder.output_bias", {target_size}, Builder::Init::zero);
  encoder = Encoder::make(Builder(builder.at(Role::encoder), "encoder"), spec);
  decoder = Decoder::make(Builder(builder.at(Role::decoder), "decoder"), spec, encoder->width(),
                          encoder->final_width());
}

Model::Impl::Encoded Model::Impl::encode(Tape& tape, const ops::Symbols& symbols,
                                         const Tensor& mask,
                                         std::vector<std::int32_t> lengths) const {
  ops::PaddedSentences sentences(mask);
  sentences.lengths = upload(context, lengths, {static_cast<std::int64_t>(lengths.size())});
  sentences.host_lengths = std::move(lengths);
  Var x = embed(tape, *source_table, symbols);
  tape.milestone(static_cast<int>(Completed::encoder));
  const Encoder::Result out = (*encoder)(tape, std::move(x), sentences);
  return {decoder->remember(tape, out.annotations, sentences.lengths), out.final_state};
}

Var Model::Impl::embed_target(Tape& tape, const ops::Symbols& symbols) const {
  return embed(tape, *target_table, symbols);
}

Var Model::Impl::embed(Tape& tape, Parameter& table, const ops::Symbols& symbols) const {
  Var x = ops::embedding(tape, table, symbols);
  // A tied table has values of about E^-1/2, small beside what the first layer adds to them.
  if (spec.block.embedding_scale == EmbeddingScale::sqrt)
    x = ops::scale(tape, std::move(x), std::sqrt(static_cast<float>(spec.dim_emb)));
  return ops::dropout(tape, x, static_cast<float>(spec.dropout_emb));
}

Model::Impl::Readouts Model::Impl::run(Tape& tape, const Batch& batch,
                                       std::shared_ptr<const ops::AttentionGuide> guide) const {
  const std::int64_t b = batch.sentences, s = batch.source_steps, t = batch.target_steps;
  Encoded source = encode(tape, ops::send_symbols(tape, batch.source, {s, b}),
                          upload(context, batch.source_mask, {s, b}), source_lengths(batch));
  source.memory.back().guide = std::move(guide);
  tape.milestone(static_cast<int>(Completed::decoder));
  if (tape.probe()) tape.probe()->encoder_units = tape.probe()->units.size();
  const Decoder::Result out =
      (*decoder)(tape, embed_target(tape, ops::send_symbols(tape, batch.target_in, {t, b})),
                 source.memory, decoder->start(tape, source.final_state), {});
  std::vector<std::int32_t> rows, targets;
  rows.reserve(batch.target_tokens);
  targets.reserve(batch.target_tokens);
  for (std::size_t i = 0; i < batch.target_mask.size(); ++i) {
    if (batch.target_mask[i] == 0.0f) continue;
    rows.push_back(static_cast<std::int32_t>(i));
    targets.push_back(batch.target_out[i]);
  }
  if (tape.recording() && context.backend->replays && !rows.empty()) {
    const auto more = static_cast<std::size_t>(round_tokens(batch.target_tokens, b * t));
    for (std::size_t i = 0; rows.size() < more; ++i)
      if (batch.target_mask[i] == 0.0f) rows.push_back(static_cast<std::int32_t>(i));
    targets.resize(more, kernels::no_target);
  }
  const std::int64_t n = static_cast<std::int64_t>(rows.size());
  const Tensor places = upload(context, rows, {n});
  return {decoder->readout(tape, ops::select_rows(tape, out.features, places), places),
          upload(context, targets, {n})};
}

std::shared_ptr<const ops::AttentionGuide> Model::Impl::guide(const LinkedRows& links, float weight,
                                                              const Tensor& sums) const {
  if (links.offsets.empty()) return nullptr;
  NMT_CHECK(spec.attention != AttentionType::none && sums.elements() == 3,
            "guided alignment needs attention (it is {}) and 3 loss sums (it has {})",
            name_of(spec.attention), sums.elements());
  NMT_CHECK(spec.alignment_head > 0 || spec.heads == 1,
            "guided alignment: the model's alignments are the mean of {} heads", spec.heads);
  return std::make_shared<ops::AttentionGuide>(
      ops::AttentionGuide{upload(context, links.offsets, {std::ssize(links.offsets)}),
                          upload(context, links.sources, {std::ssize(links.sources)}),
                          std::max(spec.alignment_head - 1, 0), weight, sums.slice(2, 1)});
}

Model::Model(const ModelSpec& spec, int source_vocabulary, int target_vocabulary,
             const Context& context, std::uint64_t seed, Weights weights)
    : impl_(std::make_unique<Impl>(spec, source_vocabulary, target_vocabulary, context, seed,
                                   weights)) {}
Model::Model(const Model& frozen, const Context& context)
    : Model(frozen.spec(), frozen.source_vocabulary(), frozen.target_vocabulary(), context, 0,
            Weights::none) {
  NMT_CHECK(frozen.impl_->frozen, "only the weights of a frozen model can be shared");
  NMT_CHECK(context.backend->host_memory, "only weights in host memory can be shared");
  auto theirs = frozen.impl_->parameters.all().cbegin();
  for (Parameter& own : impl_->parameters.all()) {
    own.value = theirs->value.borrow();
    own.packed = theirs->packed.borrow();
    own.packed_rows = theirs->packed_rows.borrow();
    ++theirs;
  }
  impl_->frozen = true;
}
Model::~Model() = default;

const ModelSpec& Model::spec() const {
  return impl_->spec;
}
const Context& Model::context() const {
  return impl_->context;
}
ParameterSet& Model::parameters() {
  return impl_->parameters;
}
const std::vector<RecurrentLayerInfo>& Model::recurrences() const {
  return impl_->parameters.recurrences();
}
int Model::source_vocabulary() const {
  return impl_->source_vocabulary;
}
int Model::target_vocabulary() const {
  return impl_->target_vocabulary;
}

void Model::accumulate_gradients(const Batch& given, const TrainPass& pass, const Tensor& sums,
                                 const Listener& listener) {
  NMT_CHECK(!impl_->frozen, "a frozen model cannot train");
  const bool rounds = impl_->context.backend->replays;
  const Batch rounded = rounds ? in_round_shape(given) : Batch{};
  const Batch& batch = rounds ? rounded : given;
  const LinkedRows links = links_of(batch, pass, rounds);
  const auto work = [&] {
    TrainingTape tape(impl_->context, impl_->parameters, pass, batch,
                      impl_->spec.dropout_variational, listener);
    const Impl::Readouts out =
        impl_->run(tape, batch, impl_->guide(links, pass.alignment_weight, sums));
    ops::softmax_loss(tape, out.rows, *impl_->output_table, impl_->output_bias, out.targets,
                      pass.label_smoothing, sums);
    tape.run_backward();
  };
  const std::int64_t s = batch.source_steps, t = batch.target_steps, b = batch.sentences;
  repeat(impl_->context,
         {reinterpret_cast<std::intptr_t>(impl_.get()), s, t, b,
          round_tokens(batch.target_tokens, t * b), listener ? 1 : 0, std::ssize(links.sources),
          TrainingTape::starts_update(impl_->parameters) ? 1 : 0},
         work);
  TrainingTape::end_pass(impl_->parameters);
}

BatchLoss Model::accumulate_gradients(const Batch& batch, const TrainPass& pass) {
  const Tensor sums = no_loss(impl_->context);
  accumulate_gradients(batch, pass, sums);
  return read(impl_->context, sums, batch);
}

std::int64_t Model::saved_floats(std::int64_t sentences, std::int64_t source_tokens,
                                 std::int64_t target_tokens) const {
  const Impl& m = *impl_;
  const std::int64_t embedded =
      m.spec.dim_emb * (1 + (m.spec.dropout_emb > 0 ? 1 : 0) +
                        (m.spec.block.embedding_scale == EmbeddingScale::sqrt ? 1 : 0));
  const std::int64_t source =
      embedded + m.encoder->saved_floats(source_tokens) + m.decoder->saved_source_floats();
  const std::int64_t target = embedded + m.decoder->saved_floats(source_tokens);
  const std::int64_t positions = sentences * target_tokens;
  return sentences * source_tokens * source + positions * target +
         kernels::softmax_loss_scratch(Cpu{}, positions, m.spec.dim_emb, m.target_vocabulary);
}

BatchLoss Model::evaluate(const Batch& batch, float label_smoothing) {
  Impl& m = *impl_;
  Tape tape(m.context, false);
  const Impl::Readouts out = m.run(tape, batch);
  if (!m.frozen) {
    const Tensor sums = no_loss(m.context);
    ops::softmax_loss(tape, out.rows, *m.output_table, m.output_bias, out.targets, label_smoothing,
                      sums);
    return read(m.context, sums, batch);
  }
  NMT_CHECK(label_smoothing == 0.0f, "a frozen model is evaluated without label smoothing");
  double sum = 0;
  const std::int64_t rows = out.rows->value.rows(), chunk = 256;
  for (std::int64_t first = 0; first < rows; first += chunk) {
    const std::int64_t n = std::min(chunk, rows - first);
    const Tensor logits = ops::logits(tape, tape.constant(out.rows->value.slice(first, n)),
                                      *m.output_table, m.output_bias);
    const Tensor figures = m.context.empty({2, n});  // the normalizers; the targets' logits
    dispatch(m.context, [&](const auto& backend) {
      kernels::log_sum_exp(backend, n, m.target_vocabulary, logits.f32(), figures.f32());
      kernels::pick(backend, n, m.target_vocabulary, logits.f32(),
                    out.targets.data<std::int32_t>() + first, figures.f32() + n);
    });
    const std::vector<float> values = download<float>(m.context, figures);
    for (std::int64_t r = 0; r < n; ++r)
      sum += values[static_cast<std::size_t>(r)] - values[static_cast<std::size_t>(n + r)];
  }
  return {sum, sum, batch.target_tokens};
}

Probe Model::probe(const Batch& batch) {
  Probe probe;
  Tape tape(impl_->context, false);
  tape.watch(&probe);
  impl_->run(tape, batch);
  return probe;
}

void Model::freeze(const std::function<void(Parameter&)>& fetch) {
  Impl& m = *impl_;
  if (m.frozen) return;
  for (Parameter& p : m.parameters.all()) p.fetch = fetch;
  ops::freeze(m.context, *m.output_table, true);
  m.context.arena->trim();
  if (m.context.weights != Dtype::f32)
    for (Parameter* table : {m.source_table, m.target_table}) ops::freeze(m.context, *table, true);
  m.encoder->freeze(m.context);
  m.decoder->freeze(m.context);
  for (Parameter& p : m.parameters.all()) {
    p.load();
    p.gradient = {};
    NMT_CHECK(!p.value || p.value.dtype() == Dtype::f32, "{} is {} and was not packed", p.name,
              name_of(p.value.dtype()));
  }
  m.context.arena->trim();
  m.frozen = true;
}

}  // namespace nmt
