#pragma once

#include "kernels/handles.h"
#include "model/step_scorer.h"
#include "nmt/vocabulary.h"
#include "search/alignment.h"
#include "search/batching.h"
#include "search/beam/ranking.h"
#include "search/crew.h"
#include "search/oom_splitter.h"
#include "search/piece_text.h"
#include "search/source_encoder.h"
#include "text/document_context.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nmt {

struct PairScorerOptions {
  Cpu cpu;
  Ranking ranking;  ///< all zero: score = log probability
  Batching batching;
  AlignmentKind alignment = AlignmentKind::none;
  bool pieces_in = false;  ///< both sides consist of pieces (PieceText)
  /// Called after each batch, by one thread at a time.
  std::function<void(std::int64_t pairs)> on_batch = {};
  Crew crew = {};             ///< as BatchTranslatorOptions::crew
  bool attention = false;     ///< fill PairScore::attention
  int context_sentences = 0;  ///< of the model: ModelSpec::context_sentences
};

/// The score of one pair.
struct PairScore {
  float log_prob = 0;              ///< of the target including </s>, natural logarithm
  float score = 0;                 ///< log_prob with the penalties of the ranking
  std::vector<float> word_scores;  ///< log probability of every piece, the last for </s>
  std::vector<AlignmentPoint> alignment;
  std::vector<float> attention;  ///< [T,S] as Output::attention, if requested
};

/// Scores pairs of lines by forced decoding. The scores equal those of nmt-translate for the same
/// text if it is segmented into the pieces that nmt-translate produced.
class PairScorer {
 public:
  struct Totals {
    std::int64_t sentences = 0;
    std::int64_t tokens = 0;  ///< target tokens, including </s>
    double log_prob = 0;
    std::int64_t cropped = 0;
  };

  /// Errors: as BatchTranslator.
  PairScorer(StepScorer& scorer, const Vocabulary& source, const Vocabulary& target,
             PairScorerOptions options);

  /// Scores sources[i] with targets[i], in order. A pair of two empty lines scores 0 without using
  /// the model, as in the decoder. Either side is cropped to max_length tokens; a warning names the
  /// first such pair. `contexts` of the sources: as LineTranslator::translate.
  std::vector<PairScore> score(std::span<const std::string> sources,
                               std::span<const std::string> targets, std::int64_t first_line = 1,
                               std::span<const ContextSentences> contexts = {});

  std::size_t window() const { return options_.batching.window(); }
  int context_sentences() const { return options_.context_sentences; }
  const Totals& totals() const { return totals_; }

 private:
  using Ids = std::vector<std::int32_t>;
  /// Counts a side of `tokens`, and warns of the first, if it is longer than max_length.
  void note_crop(std::size_t tokens, std::int64_t line, const char* side);
  /// Scores the pairs with these numbers as one batch.
  void score_batch(const Worker& worker, std::span<const std::size_t> batch,
                   std::span<const std::string> sources, std::span<const std::string> targets,
                   std::span<const EncodedSource> encoded, std::span<const Ids> target_ids,
                   std::vector<PairScore>& scores);
  StepScorer& scorer_;
  const Vocabulary& source_;
  const Vocabulary& target_;
  PairScorerOptions options_;
  SourceEncoder encoder_;
  std::optional<PieceText> target_pieces_;
  Totals totals_;
  OomSplitter oom_splitter_{options_.batching.option};
};

/// cross-entropy: mean over pairs with text; ce-mean-words: mean over target tokens; ce-sum;
/// perplexity: e^ce-mean-words.
double summarize(const PairScorer::Totals& totals, Summary summary);

}  // namespace nmt
