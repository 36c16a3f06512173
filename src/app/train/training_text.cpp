#include "app/train/training_text.h"

#include "core/error.h"
#include "core/log.h"
#include "text/train_vocabulary.h"
#include "train/reporter.h"

#include <algorithm>

namespace nmt::app {
namespace {

DevelopmentSet read_lines(const ParallelCorpus& corpus, const std::vector<std::int64_t>* chosen) {
  DevelopmentSet set;
  std::string storage;
  const std::int64_t count = chosen ? std::ssize(*chosen) : corpus.pairs();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t line = chosen ? (*chosen)[static_cast<std::size_t>(i)] : i;
    set.sources.emplace_back(corpus.line(Side::source, line, storage));
    set.references.emplace_back(corpus.line(Side::target, line, storage));
  }
  return set;
}

// What is unusual about the lines, once a kind.
void warn_of(const ParallelCorpus& corpus) {
  for (const Side side : {Side::source, Side::target})
    corpus.file(side).notes().warn(corpus.file(side).path());
}

// Rank 0's, when it has them.
void share(train::Communicator& ranks, std::vector<std::int64_t>& numbers) {
  auto count = static_cast<std::uint64_t>(numbers.size());
  ranks.broadcast(&count, sizeof count);
  numbers.resize(count);
  ranks.broadcast(static_cast<void*>(numbers.data()), count * sizeof numbers[0]);
}

// As many pairs as are wished; of a corpus that repeats itself, as many as can be taken.
HoldOut hold_out_some(const ParallelCorpus& corpus, std::int64_t pairs, std::uint64_t seed) {
  for (;; pairs /= 2) {
    try {
      return hold_out(corpus, pairs, seed);
    } catch (const Error&) {
      if (pairs <= 1) throw;
    }
  }
}

std::shared_ptr<const Vocabulary> train_one(const TrainingText& text, std::vector<Side> sides,
                                            const VocabularyTraining& training, const char* name) {
  const ParallelCorpus& corpus = *text.corpus;
  const std::int64_t pairs = corpus.pairs() - std::ssize(text.excluded);
  // Line k of those that are not excluded: k + j, where j excluded lines come before it.
  const auto line_of = [&](std::int64_t k) {
    std::size_t low = 0, high = text.excluded.size();
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (text.excluded[middle] - static_cast<std::int64_t>(middle) <= k) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return k + static_cast<std::int64_t>(low);
  };
  std::string storage;
  TrainedVocabulary trained = train_vocabulary(
      pairs * std::ssize(sides),
      [&](std::int64_t i) {
        return corpus.line(sides[static_cast<std::size_t>(i / pairs)], line_of(i % pairs), storage);
      },
      training, name);
  log::info("{}: {} pieces from {} lines{}", name, train::grouped(trained.vocabulary.size()),
            train::grouped(trained.lines_used),
            trained.lines_too_long > 0
                ? fmt::format(", {} lines over {} bytes passed over",
                              train::grouped(trained.lines_too_long), training.max_line_bytes)
                : "");
  return std::make_shared<const Vocabulary>(std::move(trained.vocabulary));
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
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  const auto add = [&](const std::string& line) {
    for (const char c : line) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    hash = (hash ^ '\n') * 0x100000001b3u;
  };
  for (const auto& line : development.sources) add(line);
  for (const auto& line : development.references) add(line);
  return fmt::format("{:016x}", hash);
}

TrainingText open_training_text(DataSpec& data, std::vector<train::Choice>& choices,
                                train::Communicator& ranks) {
  if (data.train_sets.size() != 2)
    fail(ExitStatus::usage, "train-sets: {} files given, needs two: nmt-train SOURCE TARGET",
         data.train_sets.size());
  if (!data.valid_sets.empty() && data.valid_sets.size() != 2)
    fail(ExitStatus::usage, "valid-sets: {} files given, needs two: source and target",
         data.valid_sets.size());
  TrainingText text;
  text.corpus = std::make_unique<ParallelCorpus>(data.train_sets[0], data.train_sets[1]);
  log::info("training text: {} pairs in {} and {}", train::grouped(text.corpus->pairs()),
            data.train_sets[0], data.train_sets[1]);
  require_same(ranks, text.corpus->hash(), "the training text differs");
  const bool first = ranks.rank() == 0;
  if (first) warn_of(*text.corpus);
  if (!data.valid_sets.empty()) {
    const ParallelCorpus development(data.valid_sets[0], data.valid_sets[1]);
    if (first) warn_of(development);
    text.development = read_lines(development, nullptr);
    log::info("development set: {} pairs in {} and {}",
              train::grouped(std::ssize(text.development.sources)), data.valid_sets[0],
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
  share(ranks, held.development);
  share(ranks, held.excluded);
  if (chosen) {
    data.valid_lines = std::ssize(held.development);
    choices.push_back({"valid-lines", fmt::format("{}", data.valid_lines),
                       "no valid-sets; held out from the training text"});
  }
  text.development = read_lines(*text.corpus, &held.development);
  text.excluded = std::move(held.excluded);
  log::info("development set: {} pairs held out, with all {} that share a side with them",
            train::grouped(std::ssize(text.development.sources)),
            train::grouped(std::ssize(text.excluded)));
  return text;
}

VocabularyPair make_vocabularies(const DataSpec& data, const TrainingText& text,
                                 train::Heartbeat& heartbeat) {
  VocabularyPair made;
  if (!data.vocabs.empty()) {
    made.source = made.target =
        std::make_shared<const Vocabulary>(Vocabulary::load(data.vocabs.front()));
    if (data.vocabs.size() == 2 && data.vocabs[1] != data.vocabs[0])
      made.target = std::make_shared<const Vocabulary>(Vocabulary::load(data.vocabs[1]));
    return made;
  }
  VocabularyTraining training;
  training.size = data.dim_vocabs.front();
  training.max_lines = data.sentencepiece_max_lines;
  if (data.joint_vocab) {
    heartbeat.activity("training the joint vocabulary");
    made.source = made.target =
        train_one(text, {Side::source, Side::target}, training, "joint vocabulary");
  } else {
    heartbeat.activity("training the source vocabulary");
    made.source = train_one(text, {Side::source}, training, "source vocabulary");
    heartbeat.activity("training the target vocabulary");
    training.size = data.dim_vocabs.back();
    made.target = train_one(text, {Side::target}, training, "target vocabulary");
  }
  return made;
}

}  // namespace nmt::app
