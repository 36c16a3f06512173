#include "tasks/language_model/language_model.h"

#include "autograd/ops/linear.h"
#include "autograd/ops/losses.h"
#include "core/error.h"
#include "kernels/pointwise.h"
#include "kernels/softmax_loss.h"
#include "model/encoder.h"
#include "model/training_tape.h"
#include "nn/weight_dropout.h"
#include "tensor/copy.h"

#include <algorithm>

namespace nmt {
namespace {

using Role = Parameter::Role;

// Copies rows of `from` to those of `to` that begin at `first`.
void copy_rows(const Context& context, const Tensor& from, const Tensor& to) {
  copy_floats(context, from.elements(), from.f32(), to.f32());
}

void check_sizes(const ModelSpec& spec) {
  if (spec.language_model.output == OutputLayer::none && spec.dim_emb != spec.dim_rnn)
    fail(ExitStatus::usage,
         "lm-output: none needs equal dim-emb and dim-rnn, which are {} and {}; use linear",
         spec.dim_emb, spec.dim_rnn);
}

}  // namespace

LanguageModel::LanguageModel(const ModelSpec& spec, int vocabulary, const Context& context,
                             std::uint64_t seed, std::int64_t streams, Weights weights)
    : spec_(spec), vocabulary_(vocabulary), context_(context) {
  check_sizes(spec);
  Rng rng(seed, 1);
  Context memory = context;
  if (weights == Weights::none) memory.arena = nullptr;
  if (weights == Weights::unset) parameters_.leave_unset();
  const Builder builder(memory, parameters_, rng, Initializer::of(spec));
  const Builder softmax = builder.at(Role::softmax);
  const std::int64_t e = spec.dim_emb, h = spec.dim_rnn;
  table_ = &builder.at(Role::embedding)
                .add("decoder.embedding", {vocabulary, e}, Builder::Init::embedding);
  output_table_ = spec.tied_embeddings
                      ? table_
                      : &softmax.add("decoder.output", {vocabulary, e}, Builder::Init::embedding);
  output_bias_ = &softmax.add("decoder.output_bias", {vocabulary}, Builder::Init::zero);
  const UnitSettings settings = unit_settings(spec, spec.dec_cell);
  const Builder decoder(builder.at(Role::decoder), "decoder");
  for (int k = 0; k < spec.dec_depth; ++k)
    layers_.emplace_back(Builder(decoder, fmt::format("layer_{}", k)),
                         settings.at(k, spec.dec_depth), k == 0 ? e : h);
  if (spec.language_model.output != OutputLayer::none) {
    const Builder readout = decoder.at(Role::readout);
    output_ = &readout.add("readout", {h, e}, Builder::Init::glorot);
    output_layer_bias_ = &readout.add("readout_bias", {e}, Builder::Init::zero);
  }
  if (streams == 0) return;
  for (const RecurrentLayer& layer : layers_) {
    for (auto* states : {&streams_, &before_update_}) {
      std::vector<Tensor>& vectors = states->emplace_back();
      const auto add = [&](std::int64_t width) {
        vectors.push_back(context_.empty({streams, width}));
        clear<float>(context_, vectors.back());
      };
      for (int v = 0; v < layer.unit().states; ++v) add(settings.state_floats(v));
      if (layer.convolution().last_floats() > 0) add(layer.convolution().last_floats());
    }
  }
}

LanguageModel::LanguageModel(const LanguageModel& frozen, const Context& context)
    : LanguageModel(frozen.spec_, frozen.vocabulary_, context, 0, 0, Weights::none) {
  NMT_CHECK(frozen.frozen_, "only the weights of a frozen model can be shared");
  NMT_CHECK(context.backend->host_memory, "only weights in host memory can be shared");
  auto theirs = frozen.parameters_.all().cbegin();
  for (Parameter& own : parameters_.all()) {
    own.value = theirs->value.borrow();
    own.packed = theirs->packed.borrow();
    own.packed_rows = theirs->packed_rows.borrow();
    ++theirs;
  }
  frozen_ = true;
}

LanguageModel::Result LanguageModel::run(Tape& tape, const ops::Symbols& ids,
                                         const LanguageModelState& state,
                                         const Tensor& mask) const {
  Result result;
  Var x =
      ops::dropout(tape, ops::embedding(tape, *table_, ids), static_cast<float>(spec_.dropout_emb));
  tape.milestone(static_cast<int>(Completed::decoder));
  const ops::PaddedSentences sentences(mask);
  for (std::size_t k = 0; k < layers_.size(); ++k) {
    std::vector<Var> initial;
    if (!state.layers.empty())
      for (const Tensor& vector : state.layers[k]) initial.push_back(tape.constant(vector));
    result.states.push_back(layers_[k](tape, x, initial, sentences, false, state.position));
    x = ops::dropout(tape, result.states.back()[0], static_cast<float>(spec_.dropout_rnn));
  }
  if (output_) x = ops::linear(tape, x, *output_, output_layer_bias_);
  if (spec_.language_model.output == OutputLayer::tanh) x = ops::tanh(tape, std::move(x));
  result.readouts = ops::dropout(tape, x, static_cast<float>(spec_.dropout_readout));
  return result;
}

LanguageModelState LanguageModel::final_state(const Result& result,
                                              const LanguageModelState& before,
                                              std::int64_t steps) const {
  LanguageModelState after;
  after.position = before.position + steps;
  for (const std::vector<Var>& vectors : result.states) {
    std::vector<Tensor>& last = after.layers.emplace_back();
    for (const Var& vector : vectors) {
      const Shape& shape = vector->value.shape();
      last.push_back(vector->value.slice(shape[0] - 1, 1).reshape({shape[1], shape[2]}));
    }
  }
  return after;
}

LanguageModelState LanguageModel::carried(const Batch& batch) const {
  if (batch.first_step == 0) return {};
  LanguageModelState state;
  state.position = batch.first_step;
  NMT_CHECK(batch.slice.stride == 1 && !streams_.empty() &&
                batch.slice.first + batch.sentences <= streams_[0][0].shape()[0],
            "a window of streams {} to {} of a model of {}", batch.slice.first,
            batch.slice.first + batch.sentences, streams_.empty() ? 0 : streams_[0][0].shape()[0]);
  for (const std::vector<Tensor>& vectors : streams_) {
    std::vector<Tensor>& part = state.layers.emplace_back();
    for (const Tensor& vector : vectors)
      part.push_back(vector.slice(batch.slice.first, batch.sentences));
  }
  return state;
}

void LanguageModel::carry(const Batch& batch, const LanguageModelState& after) {
  if (streams_.empty()) return;
  for (std::size_t k = 0; k < streams_.size(); ++k)
    for (std::size_t v = 0; v < streams_[k].size(); ++v)
      copy_rows(context_, after.layers[k][v],
                streams_[k][v].slice(batch.slice.first, batch.sentences));
}

void LanguageModel::begin_update() {
  for (std::size_t k = 0; k < streams_.size(); ++k)
    for (std::size_t v = 0; v < streams_[k].size(); ++v)
      copy_rows(context_, streams_[k][v], before_update_[k][v]);
}

void LanguageModel::restart_update() {
  for (std::size_t k = 0; k < streams_.size(); ++k)
    for (std::size_t v = 0; v < streams_[k].size(); ++v)
      copy_rows(context_, before_update_[k][v], streams_[k][v]);
}

void LanguageModel::forget_states() {
  for (std::size_t k = 0; k < streams_.size(); ++k) {
    const kernels::Unit& unit = layers_[k].unit();
    for (std::size_t v = 0; v < streams_[k].size(); ++v) {  // after the states, a convolution's
      const int state = static_cast<int>(v);
      const float start = state < unit.states ? unit.state_start(state) : 0.0f;
      dispatch(context_, [&](const auto& backend) {
        kernels::fill(backend, streams_[k][v].f32(), streams_[k][v].elements(), start);
      });
    }
  }
}

void LanguageModel::for_each_state(const Visit& visit) {
  for (std::size_t k = 0; k < streams_.size(); ++k)
    for (std::size_t v = 0; v < streams_[k].size(); ++v)
      visit(fmt::format("stream.layer_{}.{}", k, v), streams_[k][v]);
}

void LanguageModel::accumulate_gradients(const Batch& batch, const TrainPass& pass,
                                         const Tensor& sums, const Listener& listener) {
  NMT_CHECK(!frozen_, "a frozen model cannot train");
  NMT_CHECK(batch.target_tokens == static_cast<std::int64_t>(batch.sentences) * batch.target_steps,
            "a window of streams has no padding");
  const std::int64_t t = batch.target_steps, b = batch.sentences;
  const LanguageModelState state = carried(batch);
  LanguageModelState after;
  const bool drops = spec_.language_model.dropout_weights > 0;
  const Listener nobody;  // the gradients of dropped weights are complete after the pass alone
  {
    TrainingTape tape(context_, parameters_, pass, batch, spec_.dropout_variational,
                      drops ? nobody : listener);
    std::vector<Parameter*> recurrent;
    for (const RecurrentLayer& layer : layers_)
      if (layer.recurrent_weights()) recurrent.push_back(layer.recurrent_weights());
    WeightDropout dropout(tape, recurrent,
                          static_cast<float>(spec_.language_model.dropout_weights));
    const Result result = run(tape, ops::send_symbols(tape, batch.target_in, {t, b}), state, {});
    after = final_state(result, state, t);
    ops::softmax_loss(tape, result.readouts, *output_table_, output_bias_,
                      upload(context_, batch.target_out, {t * b}), pass.label_smoothing, sums);
    tape.run_backward();
    dropout.add_gradients();
    TrainingTape::end_pass(parameters_);
  }
  carry(batch, after);
}

std::vector<double> LanguageModel::log_probabilities(const Batch& batch,
                                                     LanguageModelState& state) {
  const std::int64_t t = batch.target_steps, b = batch.sentences, n = t * b;
  Tape tape(context_, false);
  const bool padded = batch.target_tokens != n;
  const Result result = run(tape, ops::send_symbols(tape, batch.target_in, {t, b}), state,
                            padded ? upload(context_, batch.target_mask, {t, b}) : Tensor());
  state = final_state(result, state, t);
  const Tensor readouts = result.readouts->value.reshape({n, spec_.dim_emb});
  const Tensor targets = upload(context_, batch.target_out, {n});
  std::vector<double> found(static_cast<std::size_t>(n));
  constexpr std::int64_t chunk = 256;
  for (std::int64_t first = 0; first < n; first += chunk) {
    const std::int64_t rows = std::min(chunk, n - first);
    const Tensor scores = logits(tape, tape.constant(readouts.slice(first, rows)));
    const Tensor figures = context_.empty({2, rows});  // the normalizers; the targets' logits
    dispatch(context_, [&](const auto& backend) {
      kernels::log_sum_exp(backend, rows, vocabulary_, scores.f32(), figures.f32());
      kernels::pick(backend, rows, vocabulary_, scores.f32(), targets.data<std::int32_t>() + first,
                    figures.f32() + rows);
    });
    const std::vector<float> values = download<float>(context_, figures);
    for (std::int64_t r = 0; r < rows; ++r)
      if (batch.target_mask[static_cast<std::size_t>(first + r)] != 0.0f)
        found[static_cast<std::size_t>(first + r)] =
            static_cast<double>(values[static_cast<std::size_t>(rows + r)]) -
            values[static_cast<std::size_t>(r)];
  }
  return found;
}

Var LanguageModel::step(Tape& tape, const Tensor& ids, LanguageModelState& state) const {
  const std::int64_t rows = ids.elements();
  const Result result = run(tape, {ids.reshape({1, rows})}, state, {});
  state = final_state(result, state, 1);
  return tape.constant(result.readouts->value.reshape({rows, spec_.dim_emb}));
}

Tensor LanguageModel::logits(Tape& tape, const Var& readouts) const {
  return ops::logits(tape, readouts, *output_table_, output_bias_);
}

void LanguageModel::freeze(const std::function<void(Parameter&)>& fetch) {
  if (frozen_) return;
  for (Parameter& p : parameters_.all()) p.fetch = fetch;
  ops::freeze(context_, *output_table_, true);
  context_.arena->trim();
  if (context_.weights != Dtype::f32) ops::freeze(context_, *table_, true);
  for (const RecurrentLayer& layer : layers_) layer.freeze(context_);
  if (output_) ops::freeze(context_, *output_);
  for (Parameter& p : parameters_.all()) {
    p.load();
    p.gradient = {};
  }
  context_.arena->trim();
  frozen_ = true;
}

}  // namespace nmt
