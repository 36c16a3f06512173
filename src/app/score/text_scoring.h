#pragma once

#include "app/score/score_spec.h"

namespace nmt::app {

/// Whether the first model of the spec is a language model. Errors (usage): as
/// ModelDirectory::open, and no model.
bool scores_text(const ScoreSpec& spec);

/// nmt-score with a language model: scores the lines of spec.files[0], or of standard input, and
/// logs the perplexity with its bootstrap interval. With two models, the score of a line is the
/// difference of its cross-entropies per word, H_2 - H_1 (Moore & Lewis 2010): the higher, the more
/// the line resembles the text of the first model. Errors (usage): more than two models or one
/// file, options of translation models; (data): a summary of no line with text.
void score_text(const ScoreSpec& spec);

/// Error (usage): options of language models, for a translation model.
void refuse_text_options(const ScoreSpec& spec);

}  // namespace nmt::app
