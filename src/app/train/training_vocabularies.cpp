#include "app/train/training_vocabularies.h"

#include "core/files/file.h"
#include "core/log.h"
#include "text/noise.h"
#include "text/vocabulary/train_vocabulary.h"
#include "text/vocabulary/word_vocabulary.h"
#include "train/reporter.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace nmt::app {
namespace {

std::shared_ptr<const Vocabulary> train_one(const TrainingText& text, std::vector<Side> sides,
                                            const VocabularyTraining& training,
                                            const DataSpec& data, const TextNoise& noise,
                                            const char* name) {
  const ParallelCorpus& corpus = *text.corpus;
  const std::int64_t pairs = corpus.pairs() - std::ssize(text.excluded);
  // Number of the k-th line that is not excluded: k + j, where j excluded lines precede it.
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
  std::string storage, changed;
  const auto train =
      data.vocab_type == VocabularyKind::words ? train_word_vocabulary : train_vocabulary;
  TrainedVocabulary trained = train(
      pairs * std::ssize(sides),
      [&](std::int64_t i) {
        const std::int64_t number = line_of(i % pairs);
        const std::string_view line =
            corpus.line(sides[static_cast<std::size_t>(i / pairs)], number, storage);
        if (!noise.any()) return line;
        changed = line;
        return noise.apply_case(changed, 0, number) ? std::string_view(changed) : line;
      },
      training, name);
  log::info("{}: {} pieces from {} lines{}", name, grouped(trained.vocabulary.size()),
            grouped(trained.lines_used),
            trained.lines_too_long > 0
                ? fmt::format(", {} lines over {} bytes skipped", grouped(trained.lines_too_long),
                              training.max_line_bytes)
                : "");
  return std::make_shared<const Vocabulary>(std::move(trained.vocabulary));
}

}  // namespace

VocabularyPair make_vocabularies(const DataSpec& data, const NoiseSpec& rates,
                                 const TrainingText& text, train::Heartbeat& heartbeat) {
  VocabularyPair made;
  if (!data.vocabs.empty()) {
    made.source = made.target =
        std::make_shared<const Vocabulary>(Vocabulary::load(data.vocabs.front()));
    if (data.vocabs.size() == 2 && data.vocabs[1] != data.vocabs[0])
      made.target = std::make_shared<const Vocabulary>(Vocabulary::load(data.vocabs[1]));
    return made;
  }
  const TextNoise noise(rates, data.seed);
  VocabularyTraining training;
  training.size = data.dim_vocabs.front();
  training.max_lines = data.sentencepiece_max_lines;
  if (data.joint_vocab) {
    heartbeat.activity("training the joint vocabulary");
    made.source = made.target =
        train_one(text, {Side::source, Side::target}, training, data, noise, "joint vocabulary");
  } else {
    heartbeat.activity("training the source vocabulary");
    made.source = train_one(text, {Side::source}, training, data, noise, "source vocabulary");
    heartbeat.activity("training the target vocabulary");
    training.size = data.dim_vocabs.back();
    made.target = train_one(text, {Side::target}, training, data, noise, "target vocabulary");
  }
  return made;
}

bool contain_vocabularies(const std::vector<std::string>& files, const VocabularyPair& model,
                          NamedVocabularies named) {
  return !files.empty() && read_file(files.front()) == model.source->bytes() &&
         (named == NamedVocabularies::source || read_file(files.back()) == model.target->bytes());
}

void broadcast(train::Communicator& ranks, VocabularyPair& vocabularies) {
  if (ranks.size() == 1) return;
  const bool first = ranks.rank() == 0;
  std::string source = first ? vocabularies.source->bytes() : "",
              target = first && vocabularies.target != vocabularies.source
                           ? vocabularies.target->bytes()
                           : "";
  ranks.barrier();
  train::broadcast(ranks, source);
  train::broadcast(ranks, target);
  if (first) return;
  const auto read = [](const std::string& bytes) {
    return std::make_shared<const Vocabulary>(Vocabulary::from_bytes(bytes, "rank 0's vocabulary"));
  };
  vocabularies.source = read(source);
  vocabularies.target = target.empty() ? vocabularies.source : read(target);
}

}  // namespace nmt::app
