#pragma once

#include "autograd/parameter.h"
#include "autograd/probe.h"
#include "config/specs.h"
#include "data/batch.h"
#include "model/trainable.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace nmt {

/// A translation model: embeddings, encoder, attention, decoder, loss.
class Model : public Trainable {
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
  ~Model() override;
  Model(const Model&) = delete;

  const ModelSpec& spec() const;
  const Context& context() const override;
  ParameterSet& parameters() override;
  /// The recurrent layers, and which of them cuDNN and persistent kernels support.
  const std::vector<RecurrentLayerInfo>& recurrences() const;
  int source_vocabulary() const;
  int target_vocabulary() const;

  /// Adds the gradients of the batch's loss, summed over tokens, to the gradients of the
  /// parameters.
  BatchLoss accumulate_gradients(const Batch& batch, const TrainPass& pass);
  void accumulate_gradients(const Batch& batch, const TrainPass& pass, const Tensor& sums,
                            const Listener& listener = {}) override;
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
