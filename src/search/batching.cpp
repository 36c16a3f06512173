#include "search/batching.h"

#include "core/error.h"

#include <algorithm>

namespace nmt {
namespace {

/// Maximum average number of padded tokens per sentence of a batch.
constexpr std::size_t padded_tokens_a_sentence = 128;
/// Below this number of sentences, a batch is much slower per sentence.
constexpr std::size_t small_batch = 8;

}  // namespace

void Batching::check() const {
  const auto at_least_one = [](const char* name, int value) {
    if (value < 1) fail(ExitStatus::usage, "{} is {}, expected at least 1", name, value);
  };
  at_least_one("mini-batch", mini_batch);
  at_least_one("maxi-batch", maxi_batch);
  at_least_one("max-length", max_length);
}

std::vector<std::vector<std::size_t>> Batching::cut(std::vector<std::size_t> sentences,
                                                    std::span<const std::size_t> lengths,
                                                    int workers) const {
  if (sort_by_length)
    std::stable_sort(sentences.begin(), sentences.end(),
                     [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
  const auto max_sentences = static_cast<std::size_t>(mini_batch),
             crew = static_cast<std::size_t>(workers);
  const std::size_t min_sentences = std::min(small_batch, (sentences.size() + crew - 1) / crew);
  std::size_t left = 0;  // tokens of the sentences that are in no batch
  for (const std::size_t sentence : sentences) left += lengths[sentence] + 1;
  std::vector<std::vector<std::size_t>> batches;
  std::size_t longest = 0, room = 0;  // room: padded tokens for more than `min_sentences` sentences
  for (const std::size_t sentence : sentences) {
    const std::size_t length = lengths[sentence] + 1;  // with </s>
    const std::size_t count = batches.empty() ? 0 : batches.back().size() + 1;
    const std::size_t padded = std::max(longest, length) * count;
    const bool fits = count > 0 && count <= max_sentences &&
                      padded <= max_sentences * padded_tokens_a_sentence &&
                      (count <= min_sentences || padded <= room);
    if (!fits) {
      batches.emplace_back();
      longest = 0;
      // One worker has no share to keep to.
      room = crew > 1 ? left / crew : max_sentences * padded_tokens_a_sentence;
    }
    left -= length;
    longest = std::max(longest, length);
    batches.back().push_back(sentence);
  }
  return batches;
}

}  // namespace nmt
