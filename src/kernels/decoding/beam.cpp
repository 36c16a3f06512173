#include "kernels/decoding/beam.h"

#include "core/threads/thread_pool.h"

#include <algorithm>
#include <vector>

namespace nmt::kernels {
namespace {

// Merges the sorted extensions of the rows of a sentence into its best extensions. Returns false
// when a score is NaN or infinite.
bool choose(const BeamStep& step, std::int32_t which, BeamSentence& sentence,
            std::vector<BeamCandidate>& choices) {
  const std::int32_t first = step.from.first[which], slots = step.from.slots[which];
  std::vector<BeamCandidate> heads;  // the best remaining extension of each row
  std::vector<int> ranks(static_cast<std::size_t>(slots), 0);
  for (std::int32_t row = first; row < first + slots; ++row) {
    heads.push_back(beam_extension(step, sentence, row, 0));
    if (beam_sum_is_finite(heads.back())) continue;
    sentence.fault = score_not_finite;
    sentence.fault_at = heads.back().token;
    sentence.fault_sum = heads.back().sum;
    return false;
  }
  const int width = beam_width(step, sentence, step.to.slots[which]);
  while (static_cast<int>(choices.size()) < width) {
    const auto best = std::max_element(
        heads.begin(), heads.end(), [](const BeamCandidate& a, const BeamCandidate& b) {
          // ties: the lower row wins.
          return a.token < 0 || b.token < 0 ? a.token < 0 && b.token >= 0 : a.sum < b.sum;
        });
    if (best == heads.end() || best->token < 0) break;
    choices.push_back(*best);
    *best = beam_extension(step, sentence, best->row,
                           ++ranks[static_cast<std::size_t>(best->row - first)]);
  }
  return true;
}

void extend(const BeamStep& step, std::int32_t which) {
  BeamSentence sentence = step.state[which];
  std::vector<BeamCandidate> choices;
  if (sentence.live > 0) {
    if (choose(step, which, sentence, choices))
      beam_update(step, choices.data(), static_cast<int>(choices.size()), sentence);
    else
      sentence.live = 0;
  }
  const std::int32_t number = sentence.step++;
  step.state[which] = sentence;
  for (std::int64_t i = 0; i < step.to.slots[which]; ++i)
    beam_write(step, which, number, choices.data(), static_cast<int>(choices.size()),
               sentence.live > 0, i);
}

}  // namespace

void beam_step(const Cpu& cpu, const BeamStep& step) {
  cpu.pool->parallel_for(step.sentences, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) extend(step, step.active[i]);
  });
}

}  // namespace nmt::kernels
