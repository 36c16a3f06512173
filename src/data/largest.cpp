#include "data/alignment/batch_links.h"
#include "data/pair_loader.h"
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

/// Where the source of a line begins with its context, if max-length counts words: these tell which
/// sentences fit, as in join_context().
class ContextBegins {
 public:
  explicit ContextBegins(const PairLoader& loader) : sentences_(loader.context_sentences) {
    const TextFile& file = loader.corpus.file(Side::source);
    words_.reserve(static_cast<std::size_t>(file.lines()));
    for (std::int64_t i = 0; i < file.lines(); ++i)
      words_.push_back(static_cast<std::uint32_t>(count_words(file.raw(i), 0).count));
    // Noise may drop the last word of each sentence.
    limit_ = loader.spec.max_length + (loader.noise.any() ? sentences_ + 1 : 0);
  }
  std::uint32_t of(std::uint32_t line) const {
    std::int64_t room = limit_ - std::int64_t{words_[line]};
    std::uint32_t begin = line;
    if (words_[line] == 0) return begin;  // the pair is dropped
    for (; begin > 0 && line - begin < static_cast<std::uint32_t>(sentences_); --begin) {
      const std::int64_t words = words_[begin - 1];
      if (words == 0 || words + 1 > room) break;
      room -= words + 1;
    }
    return begin;
  }

 private:
  int sentences_;
  std::int64_t limit_ = 0;
  std::vector<std::uint32_t> words_;  // of each line of the source
};

/// `begins`: counts the context of each line too; null: none.
Steps steps_of(const PairLoader& loader, Side side, std::span<const std::uint32_t> lines,
               const ContextBegins* begins = nullptr) {
  const TextFile& file = loader.corpus.file(side);
  const bool is_source = side == Side::source;
  const Vocabulary& vocabulary = is_source ? loader.source : loader.target;
  const BpeDropout* dropout = is_source ? loader.source_dropout.get() : loader.target_dropout.get();
  const DataSpec& spec = loader.spec;
  const bool in_words = spec.max_length_unit == LengthUnit::words;
  const auto limit = static_cast<std::size_t>(spec.max_length);
  const std::size_t max_words = limit + (loader.noise.any() ? 1 : 0);  // noise may drop the last
  std::vector<std::pair<std::size_t, std::uint32_t>> by_bytes;
  by_bytes.reserve(lines.size());
  for (const std::uint32_t line : lines) {
    const std::string_view text = file.raw(line);
    if (in_words && !spec.max_length_crop && count_words(text, limit).count > max_words) continue;
    std::size_t bytes = text.size();
    for (std::uint32_t i = begins ? begins->of(line) : line; i < line; ++i)
      bytes += file.raw(i).size();
    by_bytes.emplace_back(bytes, line);
  }
  const auto steps_alone = [&](std::uint32_t line) {
    std::string storage;
    std::string_view text = file.line(line, storage);
    if (!in_words) text = text.substr(0, kMaxPieceBytes * limit);
    std::size_t pieces = std::max(loader.measure(vocabulary, text).first.size(), std::size_t{1});
    if (loader.noise.any()) {
      const std::string upper = encode_utf8(uppercase_of(decode_utf8(text)));
      pieces = std::max(pieces, loader.measure(vocabulary, upper).first.size());
    }
    if (dropout) pieces = std::max(pieces, loader.measure(vocabulary, text, dropout).first.size());
    return static_cast<std::int64_t>(pieces) + 1;
  };
  const auto steps = [&](std::uint32_t line) {
    std::int64_t sum = 0;  // each sentence of the context has a separator
    for (std::uint32_t i = begins ? begins->of(line) : line; i <= line; ++i) sum += steps_alone(i);
    return sum;
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

Steps source_steps_of(const PairLoader& loader, std::span<const std::uint32_t> lines) {
  if (loader.context_sentences == 0) return steps_of(loader, Side::source, lines);
  if (loader.spec.max_length_unit == LengthUnit::words) {
    const ContextBegins begins(loader);
    return steps_of(loader, Side::source, lines, &begins);
  }
  // As if all sentences of the context, which any line may be, were as long as the sentence, with a
  // separator each.
  std::vector<std::uint32_t> all(static_cast<std::size_t>(loader.corpus.pairs()));
  std::iota(all.begin(), all.end(), std::uint32_t{0});
  Steps found = steps_of(loader, Side::source, all);
  for (std::int64_t* steps : {&found.longest, &found.usual})
    *steps = std::min((loader.context_sentences + std::int64_t{1}) * *steps,
                      std::int64_t{loader.spec.max_length} + 1);
  return found;
}

}  // namespace

std::vector<Batch> PairLoader::largest(std::span<const std::uint32_t> lines) const {
  const Steps t = steps_of(*this, Side::target, lines);
  const Steps s = source_steps_of(*this, lines);
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
