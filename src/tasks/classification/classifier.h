#pragma once

#include "config/specs.h"
#include "model/encoder.h"
#include "model/inventory.h"
#include "model/trainable.h"

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace nmt {

/// A padded batch of texts, which have at least one token; of labels from 0, or none if `labels` is
/// empty.
Batch make_classification_batch(std::span<const Ids* const> texts,
                                std::span<const std::int32_t> labels);

/// A classifier of texts: a label for every text (LRN, section 6.1 and 6.2, without their
/// task-specific parts).
///
///   h = bidirectional layers over the dropout of the embeddings
///   a = softmax over t of v tanh(h_t K + q)     attentive pooling, q and v are trained
///   p = softmax(dropout(sum a_t h_t) W + b)
///
/// A pair of texts is one text with </s> between them.
class Classifier : public Trainable {
 public:
  /// As Model::Weights.
  enum class Weights { fresh, unset, none };
  /// Errors (usage): contradictory sizes in the spec.
  Classifier(const ModelSpec& spec, int vocabulary, int labels, const Context& context,
             std::uint64_t seed, Weights weights = Weights::fresh);
  Classifier(const Classifier&) = delete;

  const ModelSpec& spec() const { return spec_; }
  int labels() const { return labels_; }
  const Context& context() const override { return context_; }
  ParameterSet& parameters() override { return parameters_; }
  /// Parts: embeddings, encoder, pooling (per token), output (per text).
  Inventory inventory() const;

  void accumulate_gradients(const Batch& batch, const TrainPass& pass, const Tensor& sums,
                            const Listener& listener = {}) override;
  /// The loss without dropout, smoothing and gradients.
  BatchLoss evaluate(const Batch& batch);
  /// The most probable label of every text.
  std::vector<std::int32_t> classify(const Batch& batch);

 private:
  /// Logits [1,B,L].
  Var run(Tape& tape, const Batch& batch) const;

  ModelSpec spec_;
  int labels_;
  Context context_;
  ParameterSet parameters_;
  Parameter* table_;
  std::deque<BidirectionalLayer> layers_;
  Parameter *key_, *query_, *v_, *output_, *output_bias_;
};

}  // namespace nmt
