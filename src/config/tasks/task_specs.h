#pragma once

#include "config/enums/task_enums.h"

namespace nmt {

// The settings that one task alone has, members of ModelSpec. Each has a list of options in
// src/config/tasks.

/// Settings of a language model.
struct LanguageModelSpec {
  OutputLayer output = OutputLayer::linear;
  int bptt = 35;               ///< steps of truncated back-propagation through time
  double dropout_weights = 0;  ///< on the weights of the recurrent products
};

}  // namespace nmt
