#pragma once

#include "config/enums/task_enums.h"

#include <optional>

namespace nmt {

// The settings that one task alone has, members of ModelSpec. Each has a list of options in
// src/config/tasks.

/// Settings of a language model.
struct LanguageModelSpec {
  OutputLayer output = OutputLayer::linear;
  int bptt = 35;               ///< steps of truncated back-propagation through time
  double dropout_weights = 0;  ///< on the weights of the recurrent products
};

/// Settings of a classifier.
struct ClassificationSpec {
  std::optional<LabeledUnit> labels;  ///< none ("auto"): as the training text, or not known
};

/// Settings of a tagger (tasks/tagging/tagger.h).
struct TaggingSpec {
  TaggingNetwork network = TaggingNetwork::bidirectional;
  bool crf = false;        ///< linear-chain CRF over the labels
  int dim_char_emb = 32;   ///< width of the embeddings of characters
  int dim_char_rnn = 32;   ///< width of each direction over characters; 0: words alone
  int word_min_count = 2;  ///< rarer words of the training text are <unk>
  int word_column = 0;     ///< from 1; 0: as ColumnChoice (data/columns.h)
  int tag_column = 0;      ///< the same
};

}  // namespace nmt
