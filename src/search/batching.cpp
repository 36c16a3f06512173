#include "search/batching.h"

#include "core/error.h"

#include <algorithm>

namespace nmt {
namespace {

/// Maximum average number of padded tokens per sentence of a batch.
constexpr std::size_t padded_tokens_a_sentence = 128;

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
                                                    std::span<const std::size_t> lengths) const {
  if (sort_by_length)
    std::stable_sort(sentences.begin(), sentences.end(),
                     [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
  const auto most = static_cast<std::size_t>(mini_batch);
  std::vector<std::vector<std::size_t>> batches;
  std::size_t longest = 0;
  for (const std::size_t sentence : sentences) {
    const std::size_t length = lengths[sentence] + 1;  // with </s>
    const bool fits =
        !batches.empty() && batches.back().size() < most &&
        std::max(longest, length) * (batches.back().size() + 1) <= most * padded_tokens_a_sentence;
    if (!fits) {
      batches.emplace_back();
      longest = 0;
    }
    longest = std::max(longest, length);
    batches.back().push_back(sentence);
  }
  return batches;
}

}  // namespace nmt
