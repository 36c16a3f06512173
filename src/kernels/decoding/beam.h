#pragma once

#include "core/rng.h"
#include "kernels/backend.h"

#include <cstdint>
#include <limits>

namespace nmt::kernels {

// The choice of a beam search (search/beam/beam_search.h has its rules) where the scores lie. A
// sentence has `slots` rows from `first` on, of which those with a finite sum are live; a step
// fills the slots with the best extensions of the live rows, best first, and leaves those that end
// in </s> behind. No number of a step lies on the host, so that a step can be queued, and replayed,
// without one.

/// What is wrong with a sentence's scores; its search is over then.
enum BeamFault : std::int32_t {
  no_beam_fault = 0,
  score_is_no_number,       ///< fault_at: the token, fault_sum: the sum
  no_possible_translation,  ///< fault_at: the step
};

/// What a search knows of a sentence, one of each of the batch, in device memory. Starts as
/// {longest, 0, 1}.
struct BeamSentence {
  std::int32_t longest = 0;   ///< tokens of an output at most, without </s>
  std::int32_t step = 0;      ///< steps made
  std::int32_t live = 0;      ///< hypotheses that can be extended; 0: the search is over
  std::int32_t finished = 0;  ///< whole ones
  float best = 0;             ///< the greatest score of them
  std::int32_t fault = no_beam_fault, fault_at = 0;
  float fault_sum = 0;
};

/// A token of a hypothesis, as the host reads it. `parent` is a row of the step before; token -1:
/// there is none.
struct BeamNode {
  std::int32_t parent = 0, token = -1;
  float log_prob = 0;
};

/// The rows of a step's hypotheses: i32 [B] both, of every sentence that still has rows.
struct BeamRows {
  const std::int32_t* first = nullptr;
  const std::int32_t* slots = nullptr;
  float* sums = nullptr;  ///< [rows] log probabilities; -infinity: no live hypothesis
};

struct BeamStep {
  std::int32_t beam = 1, eos = 0;
  bool n_best = false;                   ///< do not stop when nothing can overtake the best
  std::int64_t sentences = 0;            ///< that have rows
  const std::int32_t* active = nullptr;  ///< i32 [sentences]: which of the batch
  /// Rows of the step before, and of this one: the same, or two that share no memory (`slots` of
  /// both are at most `beam`).
  BeamRows from, to;
  std::int64_t rows = 0;  ///< of `to`
  // Scores of the rows of `from`. Of each the k best extensions, the best first; token -1: no more.
  int k = 1;
  const std::int32_t* tokens = nullptr;  ///< [from,k]
  const float* logits = nullptr;         ///< [from,k]
  const float* eos_logits = nullptr;     ///< [from] with a stride
  std::int64_t eos_stride = 1;
  const float* log_normalizers = nullptr;  ///< [from]
  /// [longest + 2]: of a hypothesis of so many tokens (Ranking).
  const double* length_divisors = nullptr;
  BeamSentence* state = nullptr;  ///< [B]
  // Of the rows of `to`. What has no live hypothesis extends some row of its sentence by </s>, for
  // nobody.
  std::int32_t* parents = nullptr;
  std::int32_t* next_tokens = nullptr;
  int period = 1;               ///< steps that `history` holds
  BeamNode* history = nullptr;  ///< [period,rows]: step s in row s % period
};

/// One step of all sentences.
NMT_KERNEL(beam_step, const BeamStep& step);

// ---- the rules, for both backends ----

/// An extension: of row `row`, number `rank` of it.
struct BeamChoice {
  std::int32_t row = 0, token = -1;
  float log_prob = 0, sum = 0;
};

/// Extension number `rank` of a row, token -1 where there is none that is possible. A hypothesis of
/// the greatest length has </s> alone.
NMT_HOST_DEVICE BeamChoice beam_extension(const BeamStep& step, const BeamSentence& sentence,
                                          std::int64_t row, int rank) {
  constexpr float impossible = -std::numeric_limits<float>::infinity();
  BeamChoice choice;
  choice.row = static_cast<std::int32_t>(row);
  const float before = step.from.sums[row];
  const bool closing = sentence.step == sentence.longest;
  if (before == impossible || rank >= (closing ? 1 : step.k)) return choice;
  choice.token = closing ? step.eos : step.tokens[row * step.k + rank];
  if (choice.token < 0) return choice;
  const float logit =
      closing ? step.eos_logits[row * step.eos_stride] : step.logits[row * step.k + rank];
  choice.log_prob = logit - step.log_normalizers[row];
  choice.sum = before + choice.log_prob;
  if (choice.sum == impossible) choice.token = -1;
  return choice;
}

/// Whether an extension's sum can be ranked.
NMT_HOST_DEVICE bool beam_is_number(const BeamChoice& choice) {
  return choice.token < 0 || (choice.sum - choice.sum == 0.0f);
}

/// How many of the best extensions a sentence takes.
NMT_HOST_DEVICE int beam_width(const BeamStep& step, const BeamSentence& sentence,
                               std::int32_t slots) {
  const std::int32_t width = sentence.live > 0 ? step.beam - sentence.finished : 0;
  return width < slots ? width : slots;
}

/// What becomes of a live sentence that took these extensions, best first: `choices` may lie in
/// shared memory.
NMT_HOST_DEVICE void beam_settle(const BeamStep& step, const BeamChoice* choices, int count,
                                 BeamSentence& sentence) {
  const std::int32_t tokens = sentence.step + 1;
  float greatest = 0.0f;  // of the live ones' sums: the first is
  sentence.live = 0;
  for (int i = 0; i < count; ++i) {
    const float sum = choices[i].sum;
    if (choices[i].token != step.eos) {
      if (sentence.live++ == 0) greatest = sum;
      continue;
    }
    const auto score = static_cast<float>(sum / step.length_divisors[tokens]);
    if (sentence.finished++ == 0 || score > sentence.best) sentence.best = score;
  }
  if (sentence.live + sentence.finished == 0) {
    sentence.fault = no_possible_translation;
    sentence.fault_at = sentence.step;
  }
  if (sentence.live == 0 || step.n_best || sentence.finished == 0) return;
  // Ranking::bound(): a fall is cheapest over the longest sentence, a sum above 0 is worth most
  // over the shortest.
  const double divisor = step.length_divisors[greatest > 0.0f ? tokens + 1 : sentence.longest + 1];
  if (!(static_cast<float>(greatest / divisor) > sentence.best)) sentence.live = 0;
}

}  // namespace nmt::kernels
