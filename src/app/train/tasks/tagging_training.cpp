#include "app/train/tasks/tagging_training.h"

#include "app/train/tasks/labeled_examples.h"
#include "core/error.h"
#include "core/hash/lines_hash.h"
#include "core/log.h"
#include "core/nlohmann.h"
#include "core/number_text.h"
#include "core/shell_word.h"
#include "tasks/unknown_labels.h"
#include "text/vocabulary/word_vocabulary.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace nmt::app {
namespace {

constexpr std::size_t max_word_bytes = 200;  // longer words are <unk>

std::string hash_of(const std::vector<TaggedSentence>& sentences) {
  LinesHash hash;
  for (const TaggedSentence& sentence : sentences)
    for (const std::vector<std::string>* side : {&sentence.words, &sentence.tags})
      for (const std::string& text : *side) hash.add(text);
  return hash.text();
}

ColumnFile read(const std::string& path, const TaggingSpec& spec) {
  ColumnFile file = read_columns(path, {spec.word_column, spec.tag_column});
  log::info("{}: {} sentences, {} words; words in column {}, tags in column {}{}", path,
            grouped(std::ssize(file.sentences)), grouped(file.words), file.columns.word,
            file.columns.tag, file.is_conllu ? " (CoNLL-U)" : "");
  return file;
}

}  // namespace

std::vector<TrainingTask::Default> TaggingTraining::defaults() const {
  return {{"label-smoothing", {"0"}}};
}

std::vector<std::string> TaggingTraining::idle_options() const {
  return idle_in_labeling(
      {"dim-attention", "vocabs", "vocab-type", "dim-vocabs", "sentencepiece-max-lines"});
}

void TaggingTraining::drop_long_sentences(const DataSpec& data) {
  const auto limit = static_cast<std::size_t>(data.max_length);
  std::int64_t longer = 0;
  for (TaggedSentence& sentence : sentences_) {
    if (sentence.words.size() <= limit) continue;
    ++longer;
    if (!data.max_length_crop) continue;
    sentence.words.resize(limit);
    sentence.tags.resize(limit);
  }
  leaves_out_sentences_ = longer > 0 && !data.max_length_crop;
  if (leaves_out_sentences_)
    std::erase_if(sentences_, [limit](const auto& s) { return s.words.size() > limit; });
  if (longer > 0)
    log::info("{} training sentences of more than {} words (max-length) are {}", grouped(longer),
              limit, data.max_length_crop ? "cropped" : "not used");
  if (sentences_.empty())
    fail(ExitStatus::data, "{}: no sentence has at most {} words (max-length)", data.train_sets[0],
         limit);
}

void TaggingTraining::choose(TrainingSpec& spec, std::vector<train::Choice>& choices) const {
  const bool is_small = words_ < 50'000;
  choose_model(spec, is_small ? LabelingSizes{64, 128, 256} : LabelingSizes{128, 256, 512},
               grouped(words_) + " training words", choices);
  choose_schedule(spec, std::ssize(sentences_), words_, choices);
}

void TaggingTraining::read(TrainingSpec& spec, bool, std::vector<train::Choice>& choices,
                           train::Communicator&) {
  DataSpec& data = spec.data;
  if (spec.model.tagging.crf && spec.train.label_smoothing > 0)
    fail(ExitStatus::usage, "label-smoothing: {} has no meaning with crf; expected 0",
         spec.train.label_smoothing);
  sentences_ = app::read(data.train_sets[0], spec.model.tagging).sentences;
  identity_.current = hash_of(sentences_);
  if (data.valid_sets.empty())
    hold_out(sentences_, development_,
             held_out(data, std::ssize(sentences_), "sentences", choices));
  else
    development_ = app::read(data.valid_sets[0], spec.model.tagging).sentences;
  drop_long_sentences(data);
  identity_.v0_2 = hash_of(sentences_);
  for (const TaggedSentence& sentence : sentences_) words_ += std::ssize(sentence.words);
  development_hash_ = hash_of(development_);
  choose(spec, choices);
}

void TaggingTraining::try_model(const TrainingSpec& spec) const {
  const Vocabulary none = word_vocabulary({"-"});  // no batch is read
  Tagger(spec.model, any_vocabulary, any_vocabulary, WordForms(none), Context{}, spec.train.seed,
         Tagger::Weights::none);
}

std::string TaggingTraining::batching_hash(const TrainingSpec& spec) const {
  const DataSpec& data = spec.data;
  const char* const limited = data.max_length_crop    ? " cropped to"
                              : leaves_out_sentences_ ? " of at most"
                                                      : "";
  return fmt::format(
      "{} {} sentences{}; seed {}, mini-batch {}, mini-batch-words {}, maxi-batch {}",
      identity_.current, sentences_.size(),
      *limited ? fmt::format("{} {} words", limited, data.max_length) : "", data.seed,
      data.mini_batch, data.mini_batch_words, data.maxi_batch);
}

VocabularyPair TaggingTraining::make_vocabularies(const TrainingSpec& spec, train::Heartbeat&) {
  std::map<std::string, std::int64_t> counts;
  std::set<std::string> labels;
  for (const TaggedSentence& sentence : sentences_) {
    for (const std::string& word : sentence.words) ++counts[word];
    labels.insert(sentence.tags.begin(), sentence.tags.end());
  }
  if (labels.size() < 2) {
    const std::string& only = *labels.begin();
    const auto has_other = [&](const TaggedSentence& sentence) {
      return std::any_of(sentence.tags.begin(), sentence.tags.end(),
                         [&](const std::string& tag) { return tag != only; });
    };
    if (spec.data.valid_sets.empty() &&
        std::any_of(development_.begin(), development_.end(), has_other))
      fail(ExitStatus::data,
           "{}: all words left for training have the tag {}; give a development set with "
           "valid-sets",
           spec.data.train_sets[0], only);
    fail(ExitStatus::data, "{}: all words have the tag {}; expected at least two tags",
         spec.data.train_sets[0], only);
  }
  std::vector<std::pair<std::int64_t, std::string>> frequent;
  std::int64_t covered = 0;
  for (const auto& [word, count] : counts) {
    if (count < spec.model.tagging.word_min_count || word.size() > max_word_bytes ||
        word.find_first_of(" \t\r\v\f") != std::string::npos)
      continue;
    frequent.emplace_back(-count, word);
    covered += count;
  }
  std::sort(frequent.begin(), frequent.end());
  std::vector<std::string> words;
  for (auto& [count, word] : frequent) words.push_back(std::move(word));
  log::info("vocabulary: {} of {} words, {:.2f} % of the text; {} tags", grouped(std::ssize(words)),
            grouped(std::ssize(counts)),
            100.0 * static_cast<double>(covered) / static_cast<double>(words_), labels.size());
  const auto make = [](const std::vector<std::string>& list) {
    return std::make_shared<const Vocabulary>(word_vocabulary(list));
  };
  return {make(words), make({labels.begin(), labels.end()})};
}

void TaggingTraining::make(const TrainingSpec& spec, const VocabularyPair& vocabularies,
                           TrainingDevice& device, const train::StopRequest& stop) {
  vocabularies_ = vocabularies;
  const Vocabulary &words = *vocabularies.source, &labels = *vocabularies.target;
  forms_.emplace(words);
  corpus_ = encode(sentences_, labels, *forms_);
  const std::vector<std::string> names = label_names(labels);
  require_known_labels(spec.data.train_sets[0], names, label_lines(sentences_), "word",
                       spec.start_anew);
  const std::string& development_file =
      (spec.data.valid_sets.empty() ? spec.data.train_sets : spec.data.valid_sets)[0];
  warn_of_unknown_labels(development_file, names, label_lines(development_), "word");
  require_an_example_of_known_labels(development_file, names, label_lines(development_),
                                     "sentence");
  tagger_.emplace(spec.model, words.size(), static_cast<int>(names.size()), *forms_,
                  device.context(), spec.train.seed);
  batches_.emplace(corpus_, spec.data, RankSlice{device.ranks().rank(), device.ranks().size()});
  validator_.emplace(spec.model, words.size(), names, *forms_,
                     encode(development_, labels, *forms_), label_lines(development_),
                     device.compute(), stop);
}

std::string TaggingTraining::summary(const TrainingSpec& spec) const {
  const TaggingSpec& tagging = spec.model.tagging;
  return fmt::format("tagger, {} {}{}{}", name_of(tagging.network), spec.model.enc_cell,
                     tagging.dim_char_rnn > 0 ? " over words and characters" : " over words",
                     tagging.crf ? ", CRF" : "");
}

nlohmann::ordered_json TaggingTraining::record(const TrainingSpec& spec) {
  return {{"data",
           {{"files", spec.data.train_sets},
            {"sentences", std::ssize(sentences_)},
            {"words", words_},
            {"development_files", spec.data.valid_sets},
            {"development_sentences", std::ssize(development_)},
            {"word_types", vocabularies_.source->size()},
            {"labels", tagger_->labels()},
            {"weights", tagger_->parameters().elements()}}}};
}

std::string TaggingTraining::next_step(const std::string& directory) const {
  return fmt::format("tag with: nmt-tag -m {} < TEXT > TAGS", shell_word(directory));
}

}  // namespace nmt::app
