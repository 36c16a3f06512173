#pragma once

#include "app/models/loaded_ensemble.h"
#include "config/enums/task_enums.h"
#include "config/option.h"
#include "config/specs.h"
#include "search/score_stream.h"

#include <optional>
#include <string>
#include <vector>

namespace nmt::app {

/// Defaults that make scores plain log probabilities.
inline SearchSpec scoring_search() {
  SearchSpec search;
  search.length_penalty = 0;
  return search;
}

/// Specification of nmt-score.
struct ScoreSpec {
  EnsembleSpec models;
  /// Length normalization, coverage penalty and batches; there is no search.
  SearchSpec search = scoring_search();
  ComputeSpec compute;
  /// Language models: what a line is scored after; none: the text, with two models the line.
  std::optional<LineContext> context;
  int parts = 1;           ///< language models: parts of a text that are read side by side
  bool pieces_in = false;  ///< both sides are already split into pieces of the vocabularies
  bool attention = false;  ///< keep attention weights (PairScore::attention)

  // Files of score().
  std::vector<std::string> files;   ///< source and target
  std::string output;               ///< "" and "-": standard output
  ScoreOutput format;               ///< of the output; score() sets its summary from `summary`
  Summary summary = Summary::none;  ///< none: one line per pair
};

/// The options of nmt-score.
std::vector<config::Option> fields(ScoreSpec& spec);
/// Moves arguments after the first model that are not directories to the files to score, so that
/// `-m A B SOURCE TARGET` means two models and two files. Error (usage): no model, or a file in its
/// place.
void separate_files(ScoreSpec& spec);
/// Error (usage): settings that are out of range or contradict each other.
void check(const ScoreSpec& spec);

}  // namespace nmt::app
