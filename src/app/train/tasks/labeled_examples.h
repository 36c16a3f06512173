#pragma once

#include "app/train/training_spec.h"
#include "train/autoconfig.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace nmt::app {

/// Options of encoder, decoder, attention and search that determine nothing in a task that labels
/// words or texts, and those of `more`.
std::vector<std::string> idle_in_labeling(std::vector<std::string> more);

/// Completes data.valid_lines and returns it. `examples` names them: "sentences". Error (data):
/// none would be left to train on.
std::int64_t held_out(DataSpec& data, std::int64_t all, const char* examples,
                      std::vector<train::Choice>& choices);

/// Moves evenly spaced examples to the development set.
template <class Example>
void hold_out(std::vector<Example>& examples, std::vector<Example>& development,
              std::int64_t held) {
  const std::int64_t all = std::ssize(examples);
  std::vector<Example> kept;
  for (std::int64_t i = 0; i < all; ++i) {
    const bool is_held = (i + 1) * held / all > i * held / all;
    (is_held ? development : kept).push_back(std::move(examples[static_cast<std::size_t>(i)]));
  }
  examples = std::move(kept);
}

/// Sizes of a model that labels words or texts.
struct LabelingSizes {
  int dim_emb, dim_rnn, mini_batch_words;
};
/// Replaces unset sizes, dropout, gates and positions. `why` names what the sizes depend on.
void choose_model(TrainingSpec& spec, const LabelingSizes& sizes, const std::string& why,
                  std::vector<train::Choice>& choices);
/// Replaces unset settings of the schedule. `examples` and `tokens`: of the training text.
void choose_schedule(TrainingSpec& spec, std::int64_t examples, std::int64_t tokens,
                     std::vector<train::Choice>& choices);

}  // namespace nmt::app
