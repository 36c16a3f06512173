#pragma once

#include "config/specs.h"
#include "kernels/backend.h"
#include "model/step_scorer.h"
#include "search/beam/ranking.h"
#include "search/beam/shortlist.h"

#include <cstdint>
#include <span>
#include <vector>

namespace nmt {

/// What a search needs beside a scorer. Ids are the target vocabulary's.
struct SearchOptions {
  Cpu cpu;  ///< pool on which rows are searched
  int beam_size = 4;
  Ranking ranking;  ///< how finished hypotheses are compared
  /// Longest output = factor * source tokens + offset, without </s>.
  double max_length_factor = 3.0;
  int max_length_offset = 10;
  bool allow_unk = false;
  bool n_best = false;  ///< keep beam_size hypotheses, not only the best
  /// Which tokens a sentence may be translated with; null: all.
  const Shortlist* shortlist = nullptr;
  bool want_attention = false;  ///< fill Hypothesis::attention
  std::int32_t unk = 0, bos = 1, eos = 2;
};

/// The options that a SearchSpec asks for. Errors (usage): as config::check().
SearchOptions search_options(const SearchSpec& spec, const Cpu& cpu);

/// A finished translation.
struct Hypothesis {
  std::vector<std::int32_t> ids;  ///< without </s>
  /// [T], natural logarithms, the last is that of </s>; T = ids.size() + 1.
  std::vector<float> log_probs;
  float log_prob = 0;  ///< their sum, added in order
  float score = 0;     ///< log_prob under the ranking's penalties
  /// [T,S], S = source tokens + 1 (the source's </s>), or empty when not asked for.
  std::vector<float> attention;
};

struct SentenceResult {
  /// Best first; one, or at most beam_size distinct ones for an n-best list.
  std::vector<Hypothesis> hypotheses;
};

/// Translates the sources (ids without </s>) together; results are in the order of the sources.
///
/// At every step a sentence that has f finished hypotheses keeps the beam_size - f most probable
/// extensions of its live ones, </s> among the possible extensions from the first step on; those
/// that end in </s> are finished. So the beam narrows as hypotheses finish, and the search of a
/// sentence ends when nothing is live (the rule of Marian). Without n_best it also ends as soon as
/// no live hypothesis can overtake the best finished one, which changes the time and never the
/// result. A hypothesis that has reached the longest output is closed by </s>, so that every result
/// is a whole sentence, scored as force_decode() scores it. <s> is never produced, <unk> only when
/// allowed.
///
/// Extensions are ranked by log probability of the whole (float, parent's sum + (logit -
/// log_normalizer)); ties go to the better parent, then to the greater logit, then to the lower id;
/// tied finished hypotheses stay in the order in which they finished. A result therefore depends
/// neither on other sentences nor on threads, as long as the scorer's numbers do not.
///
/// Errors (failed): the scorer gives NaN or infinity, or leaves a sentence no possible extension.
std::vector<SentenceResult> beam_search(StepScorer& scorer,
                                        std::span<const std::vector<std::int32_t>> sources,
                                        const SearchOptions& options);

}  // namespace nmt
