#pragma once

#include "kernels/backend.h"
#include "model/step_scorer.h"
#include "nmt/vocabulary.h"
#include "search/alignment.h"
#include "search/batching.h"
#include "search/beam/ranking.h"
#include "search/line_writer.h"
#include "search/oom_splitter.h"
#include "search/piece_text.h"
#include "search/stream.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nmt {

struct PairScorerOptions {
  Cpu cpu;
  Ranking ranking;  ///< all zero: the score is the log probability
  Batching batching;
  AlignmentKind alignment = AlignmentKind::none;
  bool pieces_in = false;  ///< both sides are in pieces already (PieceText)
  std::function<void(std::int64_t pairs)> on_batch = {};  ///< called as pairs are done
};

/// What the model thinks of one pair.
struct PairScore {
  float log_prob = 0;              ///< of the target with its </s>, natural logarithm
  float score = 0;                 ///< under the ranking
  std::vector<float> word_scores;  ///< log probability of every piece, the last is </s>
  std::vector<AlignmentPoint> alignment;
};

/// Text pairs to scores, by forced decoding: what nmt-translate says of the same text, if the text
/// has the pieces that it chose.
class PairScorer {
 public:
  struct Totals {
    std::int64_t sentences = 0;
    std::int64_t tokens = 0;  ///< target tokens, each sentence with its </s>
    double log_prob = 0;
    std::int64_t cropped = 0;
  };

  /// Errors: as BatchTranslator.
  PairScorer(StepScorer& scorer, const Vocabulary& source, const Vocabulary& target,
             PairScorerOptions options);

  /// Scores sources[i] with targets[i], in order. A pair of two empty lines scores 0 without the
  /// model, as the decoder has it. Either side is cropped after max_length tokens; the first such
  /// line is named in a warning.
  std::vector<PairScore> score(std::span<const std::string> sources,
                               std::span<const std::string> targets, std::int64_t first_line = 1);

  std::size_t window() const { return options_.batching.window(); }
  const Totals& totals() const { return totals_; }

 private:
  void crop(std::vector<std::int32_t>& ids, std::int64_t line, const char* side);
  StepScorer& scorer_;
  const Vocabulary& source_;
  const Vocabulary& target_;
  PairScorerOptions options_;
  std::optional<PieceText> source_pieces_, target_pieces_;
  Totals totals_;
  OomSplitter oom_splitter_;
};

/// The figures of Marian's --summary.
enum class Summary { none, cross_entropy, ce_mean_words, ce_sum, perplexity };
/// Errors (usage): an unknown name.
Summary summary_of(const std::string& name);
/// cross-entropy: mean over sentences; ce-mean-words: mean over target tokens; ce-sum; perplexity:
/// e^ce-mean-words.
double summarize(const PairScorer::Totals& totals, Summary summary);

struct ScoreOutput {
  bool n_best = false;  ///< the targets are an n-best list: id ||| text ||| features [||| score]
  std::string n_best_feature = "Score";
  bool word_scores = false;
  bool alignment = false;           ///< behind each score, " ||| 0-0 1-1"; not in n-best lists
  Summary summary = Summary::none;  ///< not none: one figure for all instead of one line a pair
};

/// Scores line after line of two files and writes one line a pair: the score, with word_scores "
/// ||| WordScores= ..." after it; for an n-best list the line itself with " Score= ..." added to
/// its features. Names are for messages. Errors (data): unequal numbers of lines, with both; an
/// n-best line without an id of a source line, or ids that fall.
void score_stream(PairScorer& scorer, LineSource& source, const std::string& source_name,
                  LineSource& target, const std::string& target_name, LineWriter& writer,
                  const ScoreOutput& output);

}  // namespace nmt
