#pragma once

#include "app/ensemble.h"
#include "config/option.h"
#include "config/specs.h"
#include "search/pair_scorer.h"

#include <string>
#include <vector>

namespace nmt::app {

/// Settings whose scores are plain log probabilities.
inline SearchSpec scoring_search() {
  SearchSpec search;
  search.length_penalty = 0;
  return search;
}

/// What scoring needs to know.
struct ScoreSpec {
  EnsembleSpec models;
  /// Ranking and batches; no search takes place.
  SearchSpec search = scoring_search();
  ComputeSpec compute;
  bool pieces_in = false;  ///< both sides are in pieces of the vocabularies already

  // For score(), which reads and writes files.
  std::vector<std::string> files;   ///< source and target
  std::string output;               ///< "" and "-": standard output
  ScoreOutput format;               ///< of the output; its summary is that of `summary`
  Summary summary = Summary::none;  ///< none: a line for each pair
};

/// The options of nmt-score.
std::vector<config::Option> fields(ScoreSpec& spec);
/// Takes what is no directory behind the first of the models as files to score, so that
/// `-m A B SOURCE TARGET` means two models and two files.
void separate_files(ScoreSpec& spec);
/// Error (usage): settings out of range, or that contradict each other.
void check(const ScoreSpec& spec);

}  // namespace nmt::app
