#include "config/tasks/task_fields.h"

namespace nmt::config {

std::vector<Option> language_model_fields(ModelSpec& s) {
  LanguageModelSpec& lm = s.language_model;
  return options_of(
      Task::language_model, s,
      {Option("lm-output", &lm.output,
              "language model: layer between the recurrent layers and the softmax")
           .with_role(Role::shape),
       Option("bptt", &lm.bptt, "language model: steps of truncated back-propagation")
           .range(1, 100000),
       Option("dropout-weights", &lm.dropout_weights,
              "language model: dropout probability of the recurrent weights (DropConnect)")
           .range(0, 0.99)});
}

}  // namespace nmt::config
