#pragma once

#include "config/specs.h"
#include "core/error.h"
#include "kernels/handles.h"
#include "model/step_scorer.h"
#include "search/beam/ranking.h"
#include "search/beam/shortlist.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nmt {

/// Options of a search. Ids are those of the target vocabulary.
struct SearchOptions {
  Cpu cpu;  ///< thread pool
  int beam_size = 4;
  Ranking ranking;  ///< score of finished hypotheses
  /// Maximum output length = factor * source tokens without context + offset, without </s>.
  double max_length_factor = 3.0;
  int max_length_offset = 10;
  bool allow_unk = false;
  bool n_best = false;  ///< return beam_size hypotheses instead of the best
  /// Return all hypotheses that finish until the best is known; this costs nothing.
  bool all_finished = false;
  /// Allowed output tokens per sentence; null: all.
  const Shortlist* shortlist = nullptr;
  bool want_attention = false;  ///< fill Hypothesis::attention
  /// Number of leading tokens of each source that are its context, which neither lengthen the
  /// maximum output nor need coverage; none: sources without context.
  std::span<const std::size_t> contexts = {};
  std::int32_t unk = 0, bos = 1, eos = 2;
};

/// Converts a SearchSpec. Errors (usage): as config::check().
SearchOptions search_options(const SearchSpec& spec, const Cpu& cpu);

/// A finished translation.
struct Hypothesis {
  std::vector<std::int32_t> ids;  ///< without </s>
  /// [T] natural logarithms, the last for </s>; T = ids.size() + 1.
  std::vector<float> log_probs;
  float log_prob = 0;  ///< sum of log_probs, in order
  float score = 0;     ///< log_prob with the penalties of the ranking
  /// [T,S], S = source tokens + 1 (for </s>); empty unless want_attention.
  std::vector<float> attention;
};

struct SentenceResult {
  /// Best first: one, or up to beam_size distinct hypotheses with n_best or all_finished.
  std::vector<Hypothesis> hypotheses;
};

/// The error (failed) of a search whose model gives no finite score: a weight or a state is NaN or
/// infinite, or so large that no token is possible.
class ScoreNotFinite : public Error {
 public:
  explicit ScoreNotFinite(const std::string& message) : Error(ExitStatus::failed, message) {}
};

/// Translates the sources (ids without </s>) as one batch; results are in the order of the sources.
///
/// At every step, a sentence with f finished hypotheses keeps the beam_size - f most probable
/// extensions of its live hypotheses; </s> is a possible extension from the first step on.
/// Extensions that end in </s> are finished. The beam thus narrows as hypotheses finish, and the
/// search of a sentence ends when no hypothesis is live (Marian's rule). Without n_best it also
/// ends when no live hypothesis can overtake the best finished one, which does not change the
/// result. A hypothesis of the maximum length is completed by </s>, so that every result is a
/// complete sentence, scored as by force_decode(). <s> is never produced, <unk> only if allowed.
///
/// Extensions are ranked by the log probability of the hypothesis (float: parent's sum + (logit -
/// log_normalizer)). Ties are broken by the better parent, then the larger logit, then the lower
/// id; tied finished hypotheses keep the order in which they finished. If the scores of a row do
/// not depend on other rows, neither does a result depend on other sentences or on the number of
/// threads.
///
/// Error: ScoreNotFinite, if the scorer returns NaN or infinity, or no extension of a sentence is
/// possible.
std::vector<SentenceResult> beam_search(StepScorer& scorer,
                                        std::span<const std::vector<std::int32_t>> sources,
                                        const SearchOptions& options);

}  // namespace nmt
