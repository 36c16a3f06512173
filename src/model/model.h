#pragma once

#include "autograd/parameter.h"
#include "autograd/probe.h"
#include "config/specs.h"
#include "data/batch.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace nmt {

/// Sums over the real target tokens of one batch.
struct BatchLoss {
  double cross_entropy = 0;  ///< sum of -log p(target), nats
  double smoothed = 0;  ///< sum of the label-smoothed loss less the smoothing's own entropy, nats
  std::int64_t tokens = 0;
};

/// How one training pass differs from the next: all that dropout depends on.
struct TrainPass {
  float label_smoothing = 0.0f;
  std::uint64_t seed = 1234;
  std::uint64_t pass = 0;  ///< number of this batch since the training began
};

/// What a backward pass has completed: the gradients of the decoder and its softmax, then the
/// encoder's and the attention's of its states, then the embeddings', which both sides and the
/// softmax may share.
enum class Completed : int { nothing, decoder, encoder, all };
/// When the gradient of a parameter is complete.
Completed completed_with(const Parameter& parameter);

/// A translation model: embeddings, encoder, attention, decoder, loss.
class Model {
 public:
  /// `unset`: parameters have memory that the caller fills, and no gradients; for inference alone.
  /// `none`: they are names and shapes until their values are loaded (load_frozen); likewise.
  enum class Weights { fresh, unset, none };
  /// Fresh weights are drawn from `seed`; none at all, for counting parameters, when the context
  /// has no arena. Errors (usage): a spec whose numbers do not fit together.
  Model(const ModelSpec& spec, int source_vocabulary, int target_vocabulary, const Context& context,
        std::uint64_t seed, Weights weights = Weights::fresh);
  ~Model();
  Model(const Model&) = delete;

  const ModelSpec& spec() const;
  const Context& context() const;
  ParameterSet& parameters();
  /// Its recurrent layers, and which of them cuDNN can run.
  const std::vector<RecurrentLayerInfo>& recurrences() const;
  int source_vocabulary() const;
  int target_vocabulary() const;

  /// Adds the gradients of the batch's summed loss (over tokens, not averaged) to the parameters'
  /// gradients.
  BatchLoss accumulate_gradients(const Batch& batch, const TrainPass& pass);
  /// The same without waiting for the device: the loss is added to sums f64 [2], cross-entropy and
  /// smoothed, on the device. `listener` hears after every op of the backward pass what is complete
  /// by now, but never of all.
  using Listener = std::function<void(Completed)>;
  void accumulate_gradients(const Batch& batch, const TrainPass& pass, const Tensor& sums,
                            const Listener& listener = {});
  /// Floats that accumulate_gradients() of such a batch has in memory at most, beside parameters
  /// and gradients: an estimate. Needs no weights.
  std::int64_t saved_floats(std::int64_t sentences, std::int64_t source_tokens,
                            std::int64_t target_tokens) const;
  /// The loss alone: no dropout, no gradients.
  BatchLoss evaluate(const Batch& batch, float label_smoothing = 0.0f);

  /// Gates and attention of a forced pass over the batch, in the host's memory.
  Probe probe(const Batch& batch);

  /// Packs the matrices for decoding, in the context's dtype of weights, and drops what packing
  /// replaces; gradients go too. The model decodes from here on. `fetch`, when given, fills a
  /// parameter's value just before it is packed, the largest first, so that no more than one matrix
  /// is there twice.
  void freeze(const std::function<void(Parameter&)>& fetch = {});

 private:
  struct Impl;
  friend class ModelScorer;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nmt
