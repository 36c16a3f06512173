#pragma once

#include "autograd/parameter.h"
#include "data/batch.h"
#include "tensor/context.h"

#include <cstdint>
#include <functional>
#include <string>

namespace nmt {

/// Sums over the real target tokens of one batch.
struct BatchLoss {
  double cross_entropy = 0;  ///< sum of -log p(target), nats
  /// sum of the label-smoothed loss minus the entropy of the smoothed labels, nats.
  double smoothed = 0;
  std::int64_t tokens = 0;
  double alignment = 0;  ///< cross-entropy of links and attention, nats, unweighted
};

/// Identifies a training pass: everything that dropout depends on.
struct TrainPass {
  float label_smoothing = 0.0f;
  std::uint64_t seed = 1234;
  std::uint64_t pass = 0;         ///< number of this batch since the start of the training
  float alignment_weight = 0.0f;  ///< of guided alignment, for batches with links
};

/// Progress of a backward pass: first the gradients of the decoder and its softmax are complete,
/// then those of the encoder and of the attention keys, then those of the embeddings, which both
/// sides and the softmax may share.
enum class Completed : int { nothing, decoder, encoder, all };
/// When the gradient of a parameter is complete.
Completed completed_with(const Parameter& parameter);

/// What the training loop needs of a model. Implemented by the translation model (model/model.h)
/// and by the models of the other tasks (src/tasks).
class Trainable {
 public:
  virtual ~Trainable() = default;
  virtual ParameterSet& parameters() = 0;
  virtual const Context& context() const = 0;

  /// Adds the gradients of the batch's loss, summed over tokens, to the gradients of the
  /// parameters, without synchronizing with the device: the loss is added to sums f64 [3]
  /// (cross-entropy, smoothed, that of guided alignment without its weight) on the device; f64 [2]
  /// without guided alignment. `listener` is called after every op of the backward
  /// pass with what is complete, but never with `all`. Where the device replays the pass, it may be
  /// called for passes that do not run on the device: what it does for good belongs between graphs
  /// (tensor/repeat.h).
  using Listener = std::function<void(Completed)>;
  virtual void accumulate_gradients(const Batch& batch, const TrainPass& pass, const Tensor& sums,
                                    const Listener& listener) = 0;

  /// The tensors besides the weights that the next batch depends on, such as states carried from
  /// batch to batch. They are saved in checkpoints; the shapes are constant.
  using Visit = std::function<void(const std::string& name, Tensor& tensor)>;
  virtual void for_each_state(const Visit&) {}
  /// Called before the first batch of an update.
  virtual void begin_update() {}
  /// Called when memory ran out: the batches of the update follow again, in smaller parts.
  virtual void restart_update() {}
  /// Called when an update was not finite, and after the return to an older checkpoint that follows
  /// several of them: the tensors of for_each_state() may be what overflowed. They begin again.
  virtual void forget_states() {}
};

}  // namespace nmt
