#pragma once

#include "autograd/tape.h"
#include "model/trainable.h"

namespace nmt {

/// The tape of a training pass over a batch.
class TrainingTape : public Tape {
 public:
  /// `listener` may be empty; it and the parameters must outlive the tape.
  TrainingTape(const Context& context, ParameterSet& parameters, const TrainPass& pass,
               const Batch& batch, bool dropout_variational, const Trainable::Listener& listener);

  /// Tape::backward(). Gradients of an earlier update that the pass does not overwrite become zero,
  /// before the listener hears that they are complete.
  void run_backward();

  /// Whether the next pass overwrites gradients of an earlier update (Parameter::gradient_is_old).
  /// Its calls differ from those of other passes.
  static bool starts_update(const ParameterSet& parameters);
  /// To be called when a pass that overwrites old gradients has succeeded. Until then it may run
  /// again (tensor/repeat.h).
  static void end_pass(ParameterSet& parameters);

 private:
  void complete(Completed so_far);
  ParameterSet& parameters_;
  Completed told_ = Completed::nothing;
};

}  // namespace nmt
