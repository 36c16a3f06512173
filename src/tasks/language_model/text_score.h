#pragma once

#include "config/enums/task_enums.h"
#include "nmt/vocabulary.h"
#include "tasks/language_model/language_model.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace nmt {

/// The score of a line by a language model. Blank lines have no tokens and the score 0.
struct LineScore {
  double log_probability = 0;        ///< of the tokens and </s>, nats
  std::int64_t words = 0;            ///< words between spaces, and one for </s>
  std::int64_t tokens = 0;           ///< tokens of the vocabulary, </s> included
  std::int64_t unknown = 0;          ///< <unk> among the tokens
  std::vector<double> token_scores;  ///< log p of every token
};

/// The mean -log p per word, in nats: </s> counts as a word; pieces do not.
double entropy_per_word(std::span<const LineScore> lines);
/// exp of entropy_per_word() (Mikolov et al. 2010); infinite above 709 nats.
double perplexity(std::span<const LineScore> lines);

/// A 95 % interval.
struct PerplexityInterval {
  double low = 0, high = 0;
};
/// Bootstrap interval of the perplexity (Efron 1979): percentiles over `samples` resamples of the
/// lines with text, drawn as numpy's default_rng(seed). There must be such a line.
PerplexityInterval perplexity_interval(std::span<const LineScore> lines, int samples,
                                       std::uint64_t seed);

/// How lines are scored.
struct ScoringSettings {
  /// text: all lines before it; line: </s> alone, so that scores do not depend on other lines.
  LineContext context = LineContext::text;
  /// Context `text`: parts of the text, of whole lines and nearly equal numbers of tokens, that are
  /// read side by side; each begins after </s>. 1: the whole text in order.
  int parts = 1;
  int steps = 64;                    ///< context `text`: steps of a batch
  std::int64_t batch_tokens = 4096;  ///< context `line`: padded tokens of a batch
  std::function<void()> on_batch;    ///< called before each batch
};

/// Scores lines of valid UTF-8 by a frozen model.
std::vector<LineScore> score_lines(LanguageModel& model, const Vocabulary& vocabulary,
                                   std::span<const std::string> lines,
                                   const ScoringSettings& settings);

}  // namespace nmt
