#include "data/pair_loader.h"

#include "core/error.h"
#include "text/lines.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace nmt {
namespace {

// Random number streams of BPE-dropout: one per epoch; text/noise.cpp has lower ones.
constexpr std::uint64_t kDropoutStream = std::uint64_t{4} << 32;

Rng dropout_rng(std::uint64_t seed, std::int64_t epoch, std::int64_t line, Side side) {
  return Rng(
      seed, kDropoutStream + static_cast<std::uint64_t>(epoch),
      (static_cast<std::uint64_t>(line) << 1 | static_cast<std::uint64_t>(side == Side::target))
          << 24);
}

}  // namespace

void PairLoader::check() const {
  if (spec.mini_batch < 0)
    fail(ExitStatus::usage, "mini-batch {}: expected 0 (no limit) or a number of sentences",
         spec.mini_batch);
  if (spec.mini_batch_words < 0) {
    fail(ExitStatus::usage, "mini-batch-words {}: expected 0 (no limit) or a number of tokens",
         spec.mini_batch_words);
  }
  if (spec.mini_batch == 0 && spec.mini_batch_words == 0) {
    fail(ExitStatus::usage,
         "mini-batch and mini-batch-words are both 0: one of them must limit a batch");
  }
  if (spec.maxi_batch < 1)
    fail(ExitStatus::usage, "maxi-batch {}: expected at least 1 batch", spec.maxi_batch);
  if (spec.max_length < 1)
    fail(ExitStatus::usage, "max-length {}: expected at least 1", spec.max_length);
}

bool PairLoader::drops(std::int32_t source_length, std::int32_t target_length) const {
  if (source_length == 0 || target_length == 0) return true;
  return !spec.max_length_crop && std::max(source_length, target_length) > spec.max_length;
}

std::pair<Ids, std::int32_t> PairLoader::measure(const Vocabulary& vocabulary,
                                                 std::string_view text, const BpeDropout* dropout,
                                                 Rng rng) const {
  const auto pieces = [&](std::string_view of) {
    Ids ids = vocabulary.encode(of);
    return dropout ? dropout->apply(ids, rng) : ids;
  };
  const auto limit = static_cast<std::size_t>(spec.max_length);
  if (spec.max_length_unit == LengthUnit::pieces) {
    Ids ids = pieces(text);
    const auto length = static_cast<std::int32_t>(ids.size());
    ids.resize(std::min(ids.size(), limit));
    return {std::move(ids), length};
  }
  const WordCount words = count_words(text, limit);
  Ids ids = pieces(text.substr(0, words.kept_bytes));
  return {std::move(ids), ids.empty() ? 0 : static_cast<std::int32_t>(words.count)};
}

EncodedPair PairLoader::encode(std::int64_t line, std::int64_t epoch) const {
  EncodedPair pair = encode_alone(line, epoch);
  if (context_sentences == 0 || pair.source.empty()) return pair;
  std::vector<MeasuredSentence> context;
  for (std::int64_t i = corpus.file(Side::source).context_begin(line, context_sentences); i < line;
       ++i)
    context.push_back(encode_context(i, epoch));
  SourceIds joined = join_context(context, {std::move(pair.source), pair.source_length},
                                  spec.max_length, source.eos());
  pair.source = std::move(joined.ids);
  for (std::size_t i = 0; i < pair.links.size(); i += 2)
    pair.links[i] += static_cast<std::int32_t>(joined.context);
  return pair;
}

MeasuredSentence PairLoader::encode_context(std::int64_t line, std::int64_t epoch) const {
  std::string storage, from, to;
  std::string_view text = corpus.line(Side::source, line, storage);
  if (noise.any()) {
    std::string target_storage;
    from = text;
    to = corpus.line(Side::target, line, target_storage);
    if (noise.apply(from, to, epoch, line)) text = from;
  }
  return measure(source, text, source_dropout.get(),
                 dropout_rng(spec.seed, epoch, line, Side::source));
}

EncodedPair PairLoader::encode_alone(std::int64_t line, std::int64_t epoch) const {
  std::string source_storage, target_storage;
  const std::string_view source_text = corpus.line(Side::source, line, source_storage),
                         target_text = corpus.line(Side::target, line, target_storage);
  const std::vector<AlignmentPoint> links =
      alignments ? alignments->links(line) : std::vector<AlignmentPoint>();
  const auto encoded = [&](std::string_view from, std::string_view to, bool cut_anew) {
    const auto stream = [&](Side side) { return dropout_rng(spec.seed, epoch, line, side); };
    EncodedPair pair{.line = line};
    std::tie(pair.source, pair.source_length) =
        measure(source, from, cut_anew ? source_dropout.get() : nullptr, stream(Side::source));
    std::tie(pair.target, pair.target_length) =
        measure(target, to, cut_anew ? target_dropout.get() : nullptr, stream(Side::target));
    for (const AlignmentPoint& link : piece_links(
             links, links.empty() ? PieceGroups() : words_of_line(source, from, pair.source),
             links.empty() ? PieceGroups() : words_of_line(target, to, pair.target)))
      pair.links.insert(pair.links.end(), {link.source, link.target});
    return pair;
  };
  std::string from, to;
  if (noise.any()) {
    from = source_text;
    to = target_text;
  }
  const bool is_noised = noise.any() && noise.apply(from, to, epoch, line);
  if (is_noised || source_dropout) {
    EncodedPair pair = encoded(is_noised ? from : source_text, is_noised ? to : target_text, true);
    if (!drops(pair.source_length, pair.target_length) &&
        std::max(pair.source_length, pair.target_length) <= spec.max_length)
      return pair;
  }
  EncodedPair pair = encoded(source_text, target_text, false);
  if (drops(pair.source_length, pair.target_length)) {
    pair.source.clear();
    pair.target.clear();
    pair.links.clear();
  }
  return pair;
}

Window PairLoader::window(const std::function<EncodedPair()>& next, std::int64_t pair_limit) const {
  const std::int64_t max_pairs = std::int64_t{spec.mini_batch} * spec.maxi_batch;
  const std::int64_t max_tokens = std::int64_t{spec.mini_batch_words} * spec.maxi_batch;
  Window window;
  std::int64_t tokens = 0;
  while (window.read < pair_limit) {
    EncodedPair pair = next();
    ++window.read;
    const std::int32_t longest = std::max(pair.source_length, pair.target_length);
    const bool dropped = drops(pair.source_length, pair.target_length);
    if (pair.source_length == 0 || pair.target_length == 0) {
      ++window.drops.empty;
    } else if (longest > spec.max_length) {
      window.drops += DropCounts{.longest = longest, .longest_line = pair.line + 1};
      ++(dropped ? window.drops.too_long : window.drops.cropped);
    }
    if (!dropped) {
      tokens += static_cast<std::int64_t>(pair.target.size()) + 1;
      window.pairs.push_back(std::move(pair));
    }
    if (max_tokens > 0 && tokens >= max_tokens) break;
    if (max_pairs > 0 && static_cast<std::int64_t>(window.pairs.size()) >= max_pairs) break;
  }
  return window;
}

// The source side may have twice the tokens of the target side, so that a few long sources among
// short targets do not exceed the memory.
bool PairLoader::fits(std::int64_t sentences, std::int64_t source_steps,
                      std::int64_t target_steps) const {
  if (sentences == 1) return true;
  if (spec.mini_batch > 0 && sentences > spec.mini_batch) return false;
  if (spec.mini_batch_words == 0) return true;
  return sentences * target_steps <= spec.mini_batch_words &&
         sentences * source_steps <= 2 * std::int64_t{spec.mini_batch_words};
}

std::vector<std::vector<std::size_t>> PairLoader::cut(const Window& window) const {
  const auto& pairs = window.pairs;
  std::vector<std::size_t> sorted(pairs.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::stable_sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(pairs[a].target.size(), pairs[a].source.size()) <
           std::tuple(pairs[b].target.size(), pairs[b].source.size());
  });
  std::vector<std::vector<std::size_t>> batches;
  std::int64_t source_steps = 0, target_steps = 0;
  for (const std::size_t i : sorted) {
    source_steps = std::max(source_steps, static_cast<std::int64_t>(pairs[i].source.size()) + 1);
    target_steps = std::max(target_steps, static_cast<std::int64_t>(pairs[i].target.size()) + 1);
    if (batches.empty() ||
        !fits(static_cast<std::int64_t>(batches.back().size()) + 1, source_steps, target_steps)) {
      batches.emplace_back();
      source_steps = static_cast<std::int64_t>(pairs[i].source.size()) + 1;
      target_steps = static_cast<std::int64_t>(pairs[i].target.size()) + 1;
    }
    batches.back().push_back(i);
  }
  return batches;
}

}  // namespace nmt
