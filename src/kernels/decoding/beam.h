#pragma once

#include "core/host_device.h"
#include "kernels/decoding/top_k.h"
#include "kernels/handles.h"

#include <cstdint>
#include <limits>

namespace nmt::kernels {

// One step of beam search on the device that holds the scores (search/beam/beam_search.h has the
// rules). A sentence has `slots` rows starting at row `first`; rows with a finite sum are live
// hypotheses. A step fills the slots with the best extensions of the live rows, best first, and
// completes those that end in </s>. A step does not copy anything to the host, so it can be
// enqueued, or replayed as a CUDA graph, without synchronization.

/// Why the search of a sentence failed.
enum BeamFault : std::int32_t {
  no_beam_fault = 0,
  score_not_finite,     ///< fault_at: the token, fault_sum: the sum
  no_finite_extension,  ///< fault_at: the step
};

/// Search state of one sentence, in device memory. Initialized to {longest, 0, 1}.
struct BeamSentence {
  std::int32_t longest = 0;   ///< maximum output length in tokens, without </s>
  std::int32_t step = 0;      ///< steps done
  std::int32_t live = 0;      ///< hypotheses that can be extended; 0: the search is over
  std::int32_t finished = 0;  ///< completed hypotheses
  float best = 0;             ///< the highest score of the completed ones
  std::int32_t fault = no_beam_fault, fault_at = 0;
  float fault_sum = 0;
};

/// A token of a hypothesis in the history that the host reads. `parent` is a row of the previous
/// step; token -1: none.
struct BeamNode {
  std::int32_t parent = 0, token = -1;
  float log_prob = 0;
};

/// Row layout of the hypotheses of a step: i32 [B] each, valid for every sentence that still has
/// rows.
struct BeamRows {
  const std::int32_t* first = nullptr;
  const std::int32_t* slots = nullptr;
  float* sums = nullptr;  ///< [rows] log probabilities; -infinity: no live hypothesis
};

struct BeamStep {
  std::int32_t beam = 1, eos = 0;
  bool n_best = false;                   ///< do not stop when nothing can overtake the best
  std::int64_t sentences = 0;            ///< number of sentences with rows
  const std::int32_t* active = nullptr;  ///< i32 [sentences]: their indices in the batch
  /// Row layouts of the previous step and of this one: the same, or two that share no memory. Their
  /// `slots` are at most `beam`.
  BeamRows from, to;
  std::int64_t rows = 0;  ///< of `to`
  // Scores of the rows of `from`: the k best extensions of each row, best first; token -1: no more.
  int k = 1;
  const std::int32_t* tokens = nullptr;  ///< [from,k]
  const float* logits = nullptr;         ///< [from,k]
  const float* eos_logits = nullptr;     ///< [from], eos_stride apart
  std::int64_t eos_stride = 1;
  const float* log_normalizers = nullptr;  ///< [from]
  /// On a device, where `lists.keys` is set: the step first joins the lists (join_parts()). The
  /// pointers are those above, writable.
  struct Joined {
    PartLists lists;
    std::int32_t* tokens = nullptr;
    float *logits = nullptr, *log_normalizers = nullptr;
  } joined;
  /// [longest + 2] length penalty by number of tokens (Ranking).
  const double* length_divisors = nullptr;
  BeamSentence* state = nullptr;  ///< [B]
  // Outputs for the rows of `to`. A row without a live hypothesis extends an arbitrary row of its
  // sentence by </s>; the result is unused.
  std::int32_t* parents = nullptr;
  std::int32_t* next_tokens = nullptr;
  int period = 1;               ///< number of steps that `history` holds
  BeamNode* history = nullptr;  ///< [period,rows]: step s in row s % period
};

/// One step of all active sentences.
NMT_KERNEL(beam_step, const BeamStep& step);

// ---- the rules, for both backends ----

/// A candidate: row `row` extended by `token`.
struct BeamCandidate {
  std::int32_t row = 0, token = -1;
  float log_prob = 0, sum = 0;
};

/// The extension of a row with this rank; token -1 when there is none. A hypothesis of the maximum
/// length can only be extended by </s>.
NMT_HOST_DEVICE BeamCandidate beam_extension(const BeamStep& step, const BeamSentence& sentence,
                                             std::int64_t row, int rank) {
  constexpr float impossible = -std::numeric_limits<float>::infinity();
  BeamCandidate choice;
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

/// Whether the sum of a candidate is finite, or the candidate is empty.
NMT_HOST_DEVICE bool beam_sum_is_finite(const BeamCandidate& choice) {
  return choice.token < 0 || (choice.sum - choice.sum == 0.0f);
}

/// Number of extensions that a sentence keeps.
NMT_HOST_DEVICE int beam_width(const BeamStep& step, const BeamSentence& sentence,
                               std::int32_t slots) {
  const std::int32_t width = sentence.live > 0 ? step.beam - sentence.finished : 0;
  return width < slots ? width : slots;
}

/// Updates the state of a live sentence from its chosen extensions, best first. `choices` may be in
/// shared memory.
NMT_HOST_DEVICE void beam_update(const BeamStep& step, const BeamCandidate* choices, int count,
                                 BeamSentence& sentence) {
  const std::int32_t tokens = sentence.step + 1;
  float greatest = 0.0f;  // sum of the first, hence best, live hypothesis
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
    sentence.fault = no_finite_extension;
    sentence.fault_at = sentence.step;
  }
  if (sentence.live == 0 || step.n_best || sentence.finished == 0) return;
  // Ranking::bound(): a negative sum loses least at the maximum length, a positive one gains most
  // at the minimum length.
  const double divisor = step.length_divisors[greatest > 0.0f ? tokens + 1 : sentence.longest + 1];
  if (!(static_cast<float>(greatest / divisor) > sentence.best)) sentence.live = 0;
}

/// Writes row `i` of the next step of sentence `which`, and its node of the history of step
/// `number`. `choices`: the `taken` extensions, best first; rows past them, and all rows of a
/// sentence that is not `live` any more, extend some row of the sentence by </s>.
NMT_HOST_DEVICE void beam_write(const BeamStep& step, std::int32_t which, std::int32_t number,
                                const BeamCandidate* choices, int taken, bool live,
                                std::int64_t i) {
  BeamCandidate choice;
  choice.row = step.from.first[which];
  if (i < taken) choice = choices[i];
  const bool lives = i < taken && live && choice.token != step.eos;
  const std::int64_t row = step.to.first[which] + i;
  step.to.sums[row] = lives ? choice.sum : -std::numeric_limits<float>::infinity();
  step.parents[row] = choice.row;
  step.next_tokens[row] = lives ? choice.token : step.eos;
  step.history[number % step.period * step.rows + row] = {choice.row, choice.token,
                                                          choice.log_prob};
}

}  // namespace nmt::kernels
