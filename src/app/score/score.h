#pragma once

#include "app/ensemble.h"
#include "app/score/score_spec.h"
#include "search/pair_scorer.h"

#include <cstdint>
#include <functional>
#include <string>

namespace nmt::app {

/// A scorer of pairs with all that it works with: the device and the models there with their
/// vocabularies. One thread uses it.
class OpenScorer {
 public:
  /// `title` begins the first log line. Files named in the spec for score() are not looked at.
  /// Errors: as check(ScoreSpec), Inference and PairScorer.
  explicit OpenScorer(const ScoreSpec& spec, const std::string& title = "nmt");
  OpenScorer(const OpenScorer&) = delete;
  OpenScorer& operator=(const OpenScorer&) = delete;

  /// For pairs at hand (PairScorer::score) and for streams of lines (score_stream).
  PairScorer& scorer() { return scorer_; }
  /// Called as pairs are done, with their number.
  void on_batch(std::function<void(std::int64_t pairs)> listener) {
    on_batch_ = std::move(listener);
  }

 private:
  PairScorerOptions options(const ScoreSpec& spec);
  Inference inference_;
  std::function<void(std::int64_t)> on_batch_;
  PairScorer scorer_;
};

/// Scores the pairs of spec.files and writes to spec.output what spec.format and spec.summary ask
/// for. Returns the sums over all pairs. Errors: as OpenScorer, LineReader::open, LineWriter and
/// score_stream; (usage): no two files.
PairScorer::Totals score(const ScoreSpec& spec);

}  // namespace nmt::app
