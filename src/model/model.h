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
  /// sum of the label-smoothed loss minus the entropy of the smoothed labels, nats.
  double smoothed = 0;
  std::int64_t tokens = 0;
};

/// Identifies a training pass: everything that dropout depends on.
struct TrainPass {
  float label_smoothing = 0.0f;
  std::uint64_t seed = 1234;
  std::uint64_t pass = 0;  ///< number of this batch since the start of the training
};

/// Progress of a backward pass: first the gradients of the decoder and its softmax are complete,
/// then those of the encoder and of the attention keys, then those of the embeddings, which both
/// sides and the softmax may share.
enum class Completed : int { nothing, decoder, encoder, all };
/// When the gradient of a parameter is complete.
Completed completed_with(const Parameter& parameter);

/// A translation model: embeddings, encoder, attention, decoder, loss.
class Model {
 public:
  /// `unset`: parameters are allocated but not initialized and have no gradients; inference only.
  /// `none`: parameters are names and shapes until their values are loaded (load_frozen); inference
  /// only.
  enum class Weights { fresh, unset, none };
  /// Fresh weights are drawn from `seed`. Without an arena in the context there are no weights, for
  /// counting parameters. Errors (usage): contradictory sizes in the spec.
  Model(const ModelSpec& spec, int source_vocabulary, int target_vocabulary, const Context& context,
        std::uint64_t seed, Weights weights = Weights::fresh);
  /// A model that decodes with the weights of a frozen one, which must outlive it, in a context of
  /// its own: models with the same weights may be used by different threads at the same time. The
  /// weights must be in host memory.
  Model(const Model& frozen, const Context& context);
  ~Model();
  Model(const Model&) = delete;

  const ModelSpec& spec() const;
  const Context& context() const;
  ParameterSet& parameters();
  /// The recurrent layers, and which of them cuDNN supports.
  const std::vector<RecurrentLayerInfo>& recurrences() const;
  int source_vocabulary() const;
  int target_vocabulary() const;

  /// Adds the gradients of the batch's loss, summed over tokens, to the gradients of the
  /// parameters.
  BatchLoss accumulate_gradients(const Batch& batch, const TrainPass& pass);
  /// The same without synchronizing with the device: the loss is added to sums f64 [2]
  /// (cross-entropy, smoothed) on the device. `listener` is called after every op of the backward
  /// pass with what is complete, but never with `all`.
  using Listener = std::function<void(Completed)>;
  void accumulate_gradients(const Batch& batch, const TrainPass& pass, const Tensor& sums,
                            const Listener& listener = {});
  /// Estimate of the peak number of floats that accumulate_gradients() needs for such a batch
  /// besides parameters and gradients. Needs no weights.
  std::int64_t saved_floats(std::int64_t sentences, std::int64_t source_tokens,
                            std::int64_t target_tokens) const;
  /// Only the loss, without dropout and gradients.
  BatchLoss evaluate(const Batch& batch, float label_smoothing = 0.0f);

  /// Gates and attention of a teacher-forced pass over the batch, in host memory.
  Probe probe(const Batch& batch);

  /// Packs the matrices for decoding, in the context's weight dtype, and releases the unpacked
  /// matrices and the gradients. From then on the model only decodes. `fetch`, if given, loads the
  /// value of a parameter just before it is packed, the largest first, so that at most one matrix
  /// exists twice.
  void freeze(const std::function<void(Parameter&)>& fetch = {});

 private:
  struct Impl;
  friend class ModelScorer;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nmt
