#pragma once

#include "app/models/open_models.h"
#include "app/score/score_spec.h"
#include "search/pair_scorer.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace nmt::app {

/// A scorer of pairs, with its device, models, vocabularies and workers. Not thread-safe.
class OpenScorer {
 public:
  /// `title` begins the first log line. File names in the spec are ignored; score() uses them.
  /// `models`: loaded before with the same models, compute settings and maximum length; null: loads
  /// them. Errors: as check(ScoreSpec), OpenModels and PairScorer.
  explicit OpenScorer(const ScoreSpec& spec, const std::string& title = "nmt",
                      std::shared_ptr<OpenModels> models = nullptr);
  OpenScorer(const OpenScorer&) = delete;
  OpenScorer& operator=(const OpenScorer&) = delete;

  /// For pairs in memory (PairScorer::score) and for streams of lines (score_stream).
  PairScorer& scorer() { return scorer_; }
  /// Called after each batch with its number of pairs, by one thread at a time.
  void on_batch(std::function<void(std::int64_t pairs)> listener) {
    on_batch_ = std::move(listener);
  }

 private:
  PairScorerOptions options(const ScoreSpec& spec);
  std::shared_ptr<OpenModels> models_;
  std::function<void(std::int64_t)> on_batch_;
  PairScorer scorer_;
};

/// Scores the pairs of spec.files, or with a language model the lines of one file
/// (text_scoring.h), and writes scores or a summary to spec.output. Returns the sums
/// over all pairs. Errors: as OpenScorer, LineReader::open, LineWriter and score_stream; (usage):
/// not two files.
PairScorer::Totals score(const ScoreSpec& spec);

}  // namespace nmt::app
