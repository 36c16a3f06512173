#include "model/training_tape.h"

#include <algorithm>

namespace nmt {

Completed completed_with(const Parameter& parameter) {
  using Role = Parameter::Role;
  if (parameter.role == Role::embedding) return Completed::all;
  return parameter.role == Role::encoder || parameter.role == Role::attention_keys
             ? Completed::encoder
             : Completed::decoder;
}

TrainingTape::TrainingTape(const Context& context, ParameterSet& parameters, const TrainPass& pass,
                           const Batch& batch, bool dropout_variational,
                           const Trainable::Listener& listener)
    : Tape(context, true, pass.seed, pass.pass), parameters_(parameters) {
  if (listener)
    listen([this, &listener](int milestone) {
      const auto so_far = static_cast<Completed>(milestone);
      if (so_far > told_) complete(so_far);
      told_ = so_far;
      listener(so_far);
    });
  set_batch_slice(batch.sentences, batch.slice);
  if (dropout_variational) share_dropout_over_steps();
}

void TrainingTape::run_backward() {
  backward();
  complete(Completed::all);
}

void TrainingTape::complete(Completed so_far) {
  for (Parameter& parameter : parameters_.all())
    if (parameter.gradient_is_old && completed_with(parameter) <= so_far) gradient(parameter);
}

bool TrainingTape::starts_update(const ParameterSet& parameters) {
  return std::any_of(parameters.all().begin(), parameters.all().end(),
                     [](const Parameter& parameter) { return parameter.gradient_is_old; });
}

void TrainingTape::end_pass(ParameterSet& parameters) {
  for (Parameter& parameter : parameters.all()) parameter.gradient_is_old = false;
}

}  // namespace nmt
