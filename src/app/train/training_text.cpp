#include "app/train/training_text.h"

#include "core/error.h"
#include "core/hash/lines_hash.h"
#include "core/log.h"
#include "core/number_text.h"
#include "train/reporter.h"

#include <algorithm>

namespace nmt::app {
namespace {

DevelopmentSet read_lines(const ParallelCorpus& corpus, const std::vector<std::int64_t>* chosen,
                          int context_sentences) {
  DevelopmentSet set;
  set.source_file = corpus.file(Side::source).path();
  set.reference_file = corpus.file(Side::target).path();
  std::string storage;
  const std::int64_t count = chosen ? std::ssize(*chosen) : corpus.pairs();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t line = chosen ? (*chosen)[static_cast<std::size_t>(i)] : i;
    if (chosen) set.lines.push_back(line + 1);
    set.sources.emplace_back(corpus.line(Side::source, line, storage));
    set.references.emplace_back(corpus.line(Side::target, line, storage));
    if (context_sentences == 0) continue;
    ContextSentences& context = set.contexts.emplace_back();
    const TextFile& file = corpus.file(Side::source);
    for (std::int64_t k = file.context_begin(line, context_sentences); k < line; ++k)
      context.emplace_back(file.line(k, storage));
  }
  return set;
}

// Warns about irregular lines, once per kind.
void warn_of(const ParallelCorpus& corpus) {
  for (const Side side : {Side::source, Side::target})
    corpus.file(side).notes().warn(corpus.file(side).path());
}

// Receives rank 0's values.
void broadcast(train::Communicator& ranks, std::vector<std::int64_t>& numbers) {
  auto count = static_cast<std::uint64_t>(numbers.size());
  ranks.broadcast(&count, sizeof count);
  numbers.resize(count);
  ranks.broadcast(static_cast<void*>(numbers.data()), count * sizeof numbers[0]);
}

// The requested number of pairs, or fewer if the corpus repeats itself.
HoldOut hold_out_some(const ParallelCorpus& corpus, std::int64_t pairs, std::uint64_t seed) {
  for (;; pairs /= 2) {
    try {
      return hold_out(corpus, pairs, seed);
    } catch (const Error&) {
      if (pairs <= 1) throw;
    }
  }
}

}  // namespace

train::CorpusSize TrainingText::size() const {
  const double share =
      1.0 - static_cast<double>(excluded.size()) / static_cast<double>(corpus->pairs());
  return {
      corpus->pairs() - std::ssize(excluded),
      static_cast<std::int64_t>(share * static_cast<double>(corpus->file(Side::target).bytes()))};
}

std::string TrainingText::development_hash() const {
  LinesHash hash;
  for (const auto& line : development.sources) hash.add(line);
  for (const auto& line : development.references) hash.add(line);
  return hash.text();
}

TrainingText open_training_text(DataSpec& data, int context_sentences,
                                std::vector<train::Choice>& choices, train::Communicator& ranks) {
  if (data.train_sets.size() != 2)
    fail(ExitStatus::usage, "train-sets: {} given, expected two: nmt-train SOURCE TARGET",
         counted(std::ssize(data.train_sets), "file"));
  if (!data.valid_sets.empty() && data.valid_sets.size() != 2)
    fail(ExitStatus::usage, "valid-sets: {} given, expected two: source and target",
         counted(std::ssize(data.valid_sets), "file"));
  TrainingText text;
  text.corpus = std::make_unique<ParallelCorpus>(data.train_sets[0], data.train_sets[1]);
  log::info("training text: {} pairs in {} and {}", grouped(text.corpus->pairs()),
            data.train_sets[0], data.train_sets[1]);
  require_same(ranks, text.corpus->identity().current, "the training text differs");
  const bool first = ranks.rank() == 0;
  if (first) warn_of(*text.corpus);
  if (!data.valid_sets.empty()) {
    const ParallelCorpus development(data.valid_sets[0], data.valid_sets[1]);
    if (first) warn_of(development);
    text.development = read_lines(development, nullptr, context_sentences);
    log::info("development set: {} pairs in {} and {}",
              grouped(std::ssize(text.development.sources)), data.valid_sets[0],
              data.valid_sets[1]);
    return text;
  }
  HoldOut held;
  const bool chosen = data.valid_lines <= 0;
  if (first)
    held = chosen
               ? hold_out_some(*text.corpus, train::held_out_pairs(text.corpus->pairs()), data.seed)
               : hold_out(*text.corpus, data.valid_lines, data.seed);
  ranks.barrier();
  broadcast(ranks, held.development);
  broadcast(ranks, held.excluded);
  if (chosen) {
    data.valid_lines = std::ssize(held.development);
    choices.push_back({"valid-lines", fmt::format("{}", data.valid_lines),
                       "no valid-sets; held out from the training text"});
  }
  text.development = read_lines(*text.corpus, &held.development, context_sentences);
  text.excluded = std::move(held.excluded);
  log::info("development set: {} pairs held out; with those that share a side, training lacks {}",
            grouped(std::ssize(text.development.sources)), grouped(std::ssize(text.excluded)));
  return text;
}

std::unique_ptr<Alignments> open_alignments(const std::string& path, const ParallelCorpus& corpus,
                                            train::Communicator& ranks) {
  auto alignments = std::make_unique<Alignments>(path, corpus);
  require_same(ranks, alignments->identity().current, "the alignments differ");
  if (ranks.rank() == 0) alignments->check();
  log::info("guided alignment: links of {} pairs in {}", grouped(corpus.pairs()), path);
  return alignments;
}

}  // namespace nmt::app
