#pragma once

#include "search/line_writer.h"
#include "search/pair_scorer.h"
#include "search/stream.h"

#include <string>

namespace nmt {

struct ScoreOutput {
  bool n_best = false;  ///< the targets are an n-best list: id ||| text ||| features [||| score]
  std::string n_best_feature = "Score";
  bool word_scores = false;
  bool alignment = false;  ///< append " ||| 0-0 1-1" to each score; not in n-best lists
  /// Unless none: one value for all pairs instead of one line per pair.
  Summary summary = Summary::none;
};

/// Scores two files line by line and writes one line per pair: the score, followed with word_scores
/// by " ||| WordScores= ..."; for an n-best list the input line with " Score= ..." added to its
/// features. The names are for error messages. Errors (data): different numbers of lines; an n-best
/// line without the id of a source line, or with decreasing ids; a summary of no pair with text.
void score_stream(PairScorer& scorer, LineSource& source, const std::string& source_name,
                  LineSource& target, const std::string& target_name, LineWriter& writer,
                  const ScoreOutput& output);

}  // namespace nmt
