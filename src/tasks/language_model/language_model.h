#pragma once

#include "autograd/ops/plain.h"
#include "config/specs.h"
#include "model/trainable.h"
#include "nn/recurrent/recurrent_layer.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace nmt {

/// The states of a language model after a step: the state vectors [B,H] of each layer; none: zeros.
/// `position` is that of the next step in the stream.
struct LanguageModelState {
  std::vector<std::vector<Tensor>> layers;
  std::int64_t position = 0;
};

/// A language model: embedding, recurrent layers, output layer, softmax with the embedding's matrix
/// or its own. Layer k reads the states of layer k-1 (Zaremba et al. 2014):
///
///   h_k = unit(h_{k-1}), h_0 = embedding;  y = W h + b (linear), tanh(W h + b) (tanh), h (none)
///   p = softmax(y E' + c)
///
/// It reads batches without a source side. A training batch is a window of streams that continue
/// from batch to batch: the final states are kept and are the initial ones of the next window
/// (truncated back-propagation through time), except where Batch::first_step is 0.
class LanguageModel : public Trainable {
 public:
  /// As Model::Weights.
  enum class Weights { fresh, unset, none };
  /// `streams`: sentences of a full training batch, whose states are kept; 0: none are.
  /// Errors (usage): contradictory sizes in the spec.
  LanguageModel(const ModelSpec& spec, int vocabulary, const Context& context, std::uint64_t seed,
                std::int64_t streams, Weights weights = Weights::fresh);
  /// As Model(frozen, context): the weights of a frozen model, for another thread.
  LanguageModel(const LanguageModel& frozen, const Context& context);
  LanguageModel(const LanguageModel&) = delete;

  const ModelSpec& spec() const { return spec_; }
  int vocabulary() const { return vocabulary_; }
  const Context& context() const override { return context_; }
  ParameterSet& parameters() override { return parameters_; }

  void accumulate_gradients(const Batch& batch, const TrainPass& pass, const Tensor& sums,
                            const Listener& listener = {}) override;
  void for_each_state(const Visit& visit) override;
  void begin_update() override;
  void restart_update() override;
  void forget_states() override;

  /// log p(target_out) of every real position [T*B], 0 where the mask is 0, without dropout.
  /// `state` is that before the batch and becomes that after it; sentences that end earlier keep
  /// the state of their end.
  std::vector<double> log_probabilities(const Batch& batch, LanguageModelState& state);
  /// Readout vectors [R,E] of one step: ids i32 [R]; the state becomes that after the step.
  Var step(Tape& tape, const Tensor& ids, LanguageModelState& state) const;
  /// Logits [R,V] of readout vectors.
  Tensor logits(Tape& tape, const Var& readouts) const;
  const Parameter& output_table() const { return *output_table_; }
  const Parameter& output_bias() const { return *output_bias_; }
  bool is_frozen() const { return frozen_; }

  /// As Model::freeze().
  void freeze(const std::function<void(Parameter&)>& fetch = {});

 private:
  /// ids [T,B] -> readouts [T,B,E], and the states after each step.
  struct Result {
    Var readouts;
    std::vector<std::vector<Var>> states;
  };
  Result run(Tape& tape, const ops::Symbols& ids, const LanguageModelState& state,
             const Tensor& mask) const;
  LanguageModelState final_state(const Result& result, const LanguageModelState& before,
                                 std::int64_t steps) const;
  LanguageModelState carried(const Batch& batch) const;
  void carry(const Batch& batch, const LanguageModelState& after);

  ModelSpec spec_;
  int vocabulary_;
  Context context_;
  ParameterSet parameters_;
  Parameter* table_;
  Parameter* output_table_;
  Parameter* output_bias_;
  Parameter* output_ = nullptr;  // [H,E] of the output layer
  Parameter* output_layer_bias_ = nullptr;
  std::deque<RecurrentLayer> layers_;
  std::vector<std::vector<Tensor>> streams_, before_update_;  // [streams,..]
  bool frozen_ = false;
};

}  // namespace nmt
