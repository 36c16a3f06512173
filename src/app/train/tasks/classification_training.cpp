#include "app/train/tasks/classification_training.h"

#include "app/train/tasks/error_rate_validator.h"
#include "app/train/tasks/labeled_examples.h"
#include "core/error.h"
#include "core/hash/lines_hash.h"
#include "core/log.h"
#include "core/nlohmann.h"
#include "core/number_text.h"
#include "core/shell_word.h"
#include "tasks/unknown_labels.h"
#include "text/utf8.h"
#include "text/vocabulary/train_vocabulary.h"
#include "text/vocabulary/word_vocabulary.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace nmt::app {
namespace {

std::string hash_of(const LabeledTexts& texts) {
  LinesHash hash;
  for (const LabeledText& example : texts.examples)
    for (const std::string* text : {&example.label, &example.text, &example.second})
      hash.add(*text);
  return hash.text();
}

LabeledTexts read(const std::string& path) {
  LabeledTexts texts = read_labeled_text(path);
  log::info("{}: {} labeled {}", path, grouped(std::ssize(texts.examples)),
            texts.has_pairs ? "pairs of texts" : "texts");
  return texts;
}

// The longest beginning of valid UTF-8 with at most so many bytes that ends between characters.
std::string_view beginning(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  std::size_t end = max_bytes;
  while (end > 0 && continues_character(text[end])) --end;
  return text.substr(0, end);
}

std::vector<std::string> labels_of(const LabeledTexts& texts) {
  std::vector<std::string> labels;
  for (const LabeledText& example : texts.examples) labels.push_back(example.label);
  return labels;
}

}  // namespace

std::vector<TrainingTask::Default> ClassificationTraining::defaults() const {
  return {{"label-smoothing", {"0"}}};
}

std::vector<std::string> ClassificationTraining::idle_options() const {
  return idle_in_labeling({"max-length-crop"});
}

void ClassificationTraining::choose(TrainingSpec& spec, std::vector<train::Choice>& choices) const {
  DataSpec& data = spec.data;
  const bool is_small = bytes_ < 1'000'000;
  const std::string by_size =
      fmt::format("{:.1f} MB of training text", static_cast<double>(bytes_) * 1e-6);
  choose_model(spec, is_small ? LabelingSizes{64, 64, 512} : LabelingSizes{128, 128, 1024}, by_size,
               choices);
  if (data.dim_vocabs.empty() && data.vocabs.empty()) {
    data.dim_vocabs = {is_small ? 2'000 : 8'000};
    choices.push_back({"dim-vocabs", fmt::format("{}", data.dim_vocabs[0]), by_size});
  }
  constexpr std::int64_t bytes_a_token = 4;
  choose_schedule(spec, std::ssize(texts_.examples), bytes_ / bytes_a_token, choices);
}

void ClassificationTraining::read(TrainingSpec& spec, bool, std::vector<train::Choice>& choices,
                                  train::Communicator&) {
  DataSpec& data = spec.data;
  if (data.vocabs.size() > 1 || data.dim_vocabs.size() > 1)
    fail(ExitStatus::usage, "{}: a classifier has one vocabulary, not {}",
         data.vocabs.size() > 1 ? "vocabs" : "dim-vocabs",
         std::max(data.vocabs.size(), data.dim_vocabs.size()));
  texts_ = app::read(data.train_sets[0]);
  identity_.current = hash_of(texts_);
  if (data.valid_sets.empty()) {
    hold_out(texts_.examples, development_.examples,
             held_out(data, std::ssize(texts_.examples), "texts", choices));
    development_.has_pairs = texts_.has_pairs;
  } else {
    development_ = app::read(data.valid_sets[0]);
  }
  if (development_.has_pairs != texts_.has_pairs)
    fail(ExitStatus::data, "{} has {}, but {} has {}", data.train_sets[0],
         texts_.has_pairs ? "pairs of texts" : "texts", data.valid_sets[0],
         development_.has_pairs ? "pairs" : "texts");
  for (const LabeledText& example : texts_.examples)
    bytes_ += std::ssize(example.text) + std::ssize(example.second);
  std::optional<LabeledUnit>& labels = spec.model.classification.labels;
  const LabeledUnit there = texts_.has_pairs ? LabeledUnit::pair : LabeledUnit::text;
  if (labels && *labels != there)
    fail(ExitStatus::usage, "{} {}, but {} has {}",
         spec.is_given("labels") ? "labels:" : "the classifier was trained on labels of a",
         name_of(*labels), data.train_sets[0], texts_.has_pairs ? "pairs of texts" : "texts");
  labels = there;
  identity_.v0_2 = hash_of(texts_);
  development_hash_ = hash_of(development_);
  choose(spec, choices);
}

void ClassificationTraining::try_model(const TrainingSpec& spec) const {
  Classifier(spec.model, any_vocabulary, any_vocabulary, Context{}, spec.train.seed,
             Classifier::Weights::none);
}

std::string ClassificationTraining::batching_hash(const TrainingSpec& spec) const {
  const DataSpec& data = spec.data;
  return fmt::format(
      "{} {} texts; seed {}, max-length {}, mini-batch {}, mini-batch-words {}, maxi-batch {}",
      identity_.current, texts_.examples.size(), data.seed, data.max_length, data.mini_batch,
      data.mini_batch_words, data.maxi_batch);
}

VocabularyPair ClassificationTraining::make_vocabularies(const TrainingSpec& spec,
                                                         train::Heartbeat& heartbeat) {
  const DataSpec& data = spec.data;
  const std::vector<std::string> all = labels_of(texts_);
  const std::set<std::string> labels(all.begin(), all.end());
  if (labels.size() < 2) {
    const std::string& only = *labels.begin();
    const auto& held = development_.examples;
    if (data.valid_sets.empty() &&
        std::any_of(held.begin(), held.end(), [&](const auto& each) { return each.label != only; }))
      fail(ExitStatus::data,
           "{}: all texts left for training have the label {}; give a development set with "
           "valid-sets",
           data.train_sets[0], only);
    fail(ExitStatus::data, "{}: all texts have the label {}; expected at least two labels",
         data.train_sets[0], only);
  }
  std::shared_ptr<const Vocabulary> vocabulary;
  if (!data.vocabs.empty()) {
    vocabulary = std::make_shared<const Vocabulary>(Vocabulary::load(data.vocabs[0]));
  } else {
    heartbeat.activity("training the vocabulary");
    std::vector<std::string_view> lines;
    for (const LabeledText& example : texts_.examples) {
      lines.push_back(example.text);
      if (texts_.has_pairs) lines.push_back(example.second);
    }
    VocabularyTraining training;
    training.size = data.dim_vocabs[0];
    training.max_lines = data.sentencepiece_max_lines;
    const bool in_words = data.vocab_type == VocabularyKind::words;
    const auto train = in_words ? train_word_vocabulary : train_vocabulary;
    // The model reads long texts from their beginning, so the vocabulary does, too: training of
    // pieces would skip them.
    const auto line = [&](std::int64_t i) {
      const std::string_view text = lines[static_cast<std::size_t>(i)];
      return in_words ? text : beginning(text, training.max_line_bytes);
    };
    vocabulary = std::make_shared<const Vocabulary>(
        train(std::ssize(lines), line, training, "vocabulary").vocabulary);
  }
  log::info("vocabulary: {} pieces; {} labels", grouped(vocabulary->size()), labels.size());
  return {vocabulary,
          std::make_shared<const Vocabulary>(word_vocabulary({labels.begin(), labels.end()}))};
}

void ClassificationTraining::make(const TrainingSpec& spec, const VocabularyPair& vocabularies,
                                  TrainingDevice& device, const train::StopRequest& stop) {
  vocabularies_ = vocabularies;
  const Vocabulary& vocabulary = *vocabularies.source;
  const std::vector<std::string> names = class_names(*vocabularies.target);
  const auto max_tokens = static_cast<std::size_t>(spec.data.max_length);
  corpus_ = encode(texts_.examples, vocabulary, names, max_tokens);
  if (corpus_.cropped > 0)
    log::info("cropped to {} pieces (max-length): {} of {} training texts", max_tokens,
              grouped(corpus_.cropped), grouped(std::ssize(corpus_.texts)));
  require_known_labels(spec.data.train_sets[0], names, labels_of(texts_), "text", spec.start_anew);
  const std::string& development_file =
      (spec.data.valid_sets.empty() ? spec.data.train_sets : spec.data.valid_sets)[0];
  warn_of_unknown_labels(development_file, names, labels_of(development_), "text");
  require_an_example_of_known_labels(development_file, names, labels_of(development_), "text");
  classifier_.emplace(spec.model, vocabulary.size(), static_cast<int>(names.size()),
                      device.context(), spec.train.seed);
  batches_.emplace(corpus_, spec.data, RankSlice{device.ranks().rank(), device.ranks().size()});
  LabeledCorpus development =
      encode(development_.examples, vocabulary, names, max_classified_tokens);
  if (development.cropped > 0)
    log::warn("{}: cropped to {} tokens, as by nmt-classify: {} of {} texts", development_file,
              max_classified_tokens, grouped(development.cropped),
              grouped(std::ssize(development.texts)));
  validator_ = std::make_unique<ErrorRateValidator>(spec.model, vocabulary.size(), names,
                                                    std::move(development), labels_of(development_),
                                                    device.compute(), stop);
}

std::string ClassificationTraining::summary(const TrainingSpec& spec) const {
  return fmt::format("classifier of {}, bidirectional {}",
                     texts_.has_pairs ? "pairs of texts" : "texts", spec.model.enc_cell);
}

nlohmann::ordered_json ClassificationTraining::record(const TrainingSpec& spec) {
  return {{"data",
           {{"files", spec.data.train_sets},
            {"texts", std::ssize(texts_.examples)},
            {"development_files", spec.data.valid_sets},
            {"development_texts", std::ssize(development_.examples)},
            {"pieces", vocabularies_.source->size()},
            {"labels", classifier_->labels()},
            {"weights", classifier_->parameters().elements()}}}};
}

std::string ClassificationTraining::next_step(const std::string& directory) const {
  return fmt::format("classify with: nmt-classify {} < TEXT > LABELS", shell_word(directory));
}

}  // namespace nmt::app
