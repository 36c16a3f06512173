#include "data/alignment/batch_links.h"
#include "data/window.h"
#include "text/lines.h"
#include "text/unicode.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace nmt {

namespace {

constexpr std::size_t kLongLines = 100;     // number of longest lines whose tokens are counted
constexpr std::size_t kMaxPieceBytes = 64;  // SentencePiece's longest piece: 16 characters

/// Lengths, including </s>, of the longest and of the median sentence of a side, ranked by bytes.
struct Steps {
  std::int64_t longest = 2, usual = 2;
};

Steps steps_of(const Loading& loading, Side side, std::span<const std::uint32_t> lines) {
  const TextFile& file = loading.corpus.file(side);
  const bool is_source = side == Side::source;
  const Vocabulary& vocabulary = is_source ? loading.source : loading.target;
  const BpeDropout* dropout =
      is_source ? loading.source_dropout.get() : loading.target_dropout.get();
  const DataSpec& spec = loading.spec;
  const bool in_words = spec.max_length_unit == LengthUnit::words;
  const auto limit = static_cast<std::size_t>(spec.max_length);
  std::vector<std::pair<std::size_t, std::uint32_t>> by_bytes;
  by_bytes.reserve(lines.size());
  for (const std::uint32_t line : lines) {
    const std::string_view text = file.raw(line);
    if (in_words && !spec.max_length_crop && count_words(text, limit).count > limit) continue;
    by_bytes.emplace_back(text.size(), line);
  }
  const auto steps = [&](std::uint32_t line) {
    std::string storage;
    std::string_view text = file.line(line, storage);
    if (!in_words) text = text.substr(0, kMaxPieceBytes * limit);
    std::size_t pieces = std::max(loading.measure(vocabulary, text).first.size(), std::size_t{1});
    if (loading.noise.any()) {
      const std::string upper = encode_utf8(uppercase_of(decode_utf8(text)));
      pieces = std::max(pieces, loading.measure(vocabulary, upper).first.size());
    }
    if (dropout) pieces = std::max(pieces, loading.measure(vocabulary, text, dropout).first.size());
    return static_cast<std::int64_t>(pieces) + 1;
  };
  Steps found;
  if (by_bytes.empty()) return found;
  const auto middle = by_bytes.begin() + static_cast<std::ptrdiff_t>(by_bytes.size() / 2);
  std::nth_element(by_bytes.begin(), middle, by_bytes.end());
  found.usual = steps(middle->second);
  const std::size_t some = std::min(kLongLines, by_bytes.size());
  std::partial_sort(by_bytes.begin(), by_bytes.begin() + static_cast<std::ptrdiff_t>(some),
                    by_bytes.end(), std::greater<>());
  for (std::size_t i = 0; i < some; ++i)
    found.longest = std::max(found.longest, steps(by_bytes[i].second));
  return found;
}

// Steps of a source with its context, whose sentences are as long as it and have a separator each.
std::int64_t with_context(const Loading& loading, std::int64_t steps) {
  const std::int64_t all = (loading.context_sentences + std::int64_t{1}) * steps;
  const DataSpec& spec = loading.spec;
  if (loading.context_sentences == 0 || spec.max_length_unit == LengthUnit::words) return all;
  return std::min(all, std::int64_t{spec.max_length} + 1);
}

}  // namespace

std::vector<Batch> Loading::largest(std::span<const std::uint32_t> lines) const {
  const Steps t = steps_of(*this, Side::target, lines);
  std::vector<std::uint32_t> all;  // any line may be context
  if (context_sentences > 0) {
    all.resize(static_cast<std::size_t>(corpus.pairs()));
    std::iota(all.begin(), all.end(), std::uint32_t{0});
  }
  Steps s = steps_of(*this, Side::source, all.empty() ? lines : all);
  for (std::int64_t* steps : {&s.longest, &s.usual}) *steps = with_context(*this, *steps);
  std::vector<Batch> batches;
  for (const auto& [source_steps, target_steps] :
       {std::pair(s.longest, t.longest), std::pair(s.usual, t.usual)}) {
    std::int64_t sentences = 1;
    while (sentences < static_cast<std::int64_t>(lines.size()) &&
           fits(sentences + 1, source_steps, target_steps))
      ++sentences;
    const Ids source_ids(static_cast<std::size_t>(source_steps) - 1, source.unk());
    const Ids target_ids(static_cast<std::size_t>(target_steps) - 1, target.unk());
    const auto count = static_cast<std::size_t>(sentences);
    batches.push_back(make_batch(std::vector(count, &source_ids), std::vector(count, &target_ids),
                                 target.bos(), target.eos()));
    if (alignments) batches.back().extra = std::make_shared<BatchLinks>(std::vector<Ids>(count));
  }
  return batches;
}

}  // namespace nmt
