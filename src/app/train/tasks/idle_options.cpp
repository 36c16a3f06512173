#include "app/train/tasks/idle_options.h"

#include "config/fields.h"

namespace nmt::app {

std::vector<std::string> idle_outside_translation(std::vector<std::string> more) {
  std::vector<std::string> idle = {"type",
                                   "context-sentences",
                                   "context-aware",
                                   "dense-first-decoder-layer",
                                   "dim-enc-upper",
                                   "attention",
                                   "heads",
                                   "attention-projections",
                                   "upper-context",
                                   "attention-query",
                                   "alignment-head",
                                   "guided-alignment",
                                   "guided-alignment-weight",
                                   "tied-embeddings-src",
                                   "tied-embeddings-all",
                                   "joint-vocab",
                                   "noise-upper",
                                   "noise-title",
                                   "noise-typos",
                                   "noise-punctuation",
                                   "bpe-dropout",
                                   "max-length-unit",
                                   "valid-max-sentences",
                                   "beam-size",
                                   "normalize",
                                   "length-penalty",
                                   "coverage-penalty",
                                   "max-length-factor",
                                   "max-length-offset",
                                   "allow-unk",
                                   "valid-max-length",
                                   "valid-mini-batch",
                                   "workers"};
  for (const std::vector<std::string>& others : {more, config::block_option_names()})
    idle.insert(idle.end(), others.begin(), others.end());
  return idle;
}

std::vector<std::string> idle_in_language_models() {
  return idle_outside_translation({"enc-cell", "enc-depth", "dim-attention", "max-length",
                                   "max-length-crop", "mini-batch-words", "maxi-batch"});
}

}  // namespace nmt::app
