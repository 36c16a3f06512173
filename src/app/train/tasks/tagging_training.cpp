#include "app/train/tasks/tagging_training.h"

#include "core/error.h"
#include "core/log.h"
#include "core/number_text.h"
#include "text/word_vocabulary.h"
#include "train/optimization/optimizer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

namespace nmt::app {
namespace {

constexpr std::size_t max_word_bytes = 200;  // longer words are <unk>

std::string hash_of(const std::vector<TaggedSentence>& sentences) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  const auto add = [&hash](const std::string& text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    hash = (hash ^ '\n') * 0x100000001b3u;
  };
  for (const TaggedSentence& sentence : sentences) {
    for (const std::string& word : sentence.words) add(word);
    for (const std::string& tag : sentence.tags) add(tag);
  }
  return fmt::format("{:016x}", hash);
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
  return {"type",
          "context-aware",
          "dense-first-decoder-layer",
          "dim-enc-upper",
          "dec-depth",
          "attention",
          "heads",
          "dim-attention",
          "attention-projections",
          "upper-context",
          "attention-query",
          "tied-embeddings",
          "tied-embeddings-src",
          "tied-embeddings-all",
          "vocabs",
          "vocab-type",
          "dim-vocabs",
          "joint-vocab",
          "sentencepiece-max-lines",
          "max-length-unit",
          "valid-metrics",
          "valid-max-sentences",
          "beam-size",
          "normalize",
          "length-penalty",
          "coverage-penalty",
          "max-length-factor",
          "max-length-offset",
          "allow-unk",
          "valid-max-length",
          "valid-mini-batch"};
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
  if (!data.max_length_crop)
    std::erase_if(sentences_, [limit](const auto& s) { return s.words.size() > limit; });
  if (longer > 0)
    log::info("{} training sentences of more than {} words (max-length) are {}", grouped(longer),
              limit, data.max_length_crop ? "cropped" : "not used");
  if (sentences_.empty())
    fail(ExitStatus::data, "{}: no sentence has at most {} words (max-length)", data.train_sets[0],
         limit);
}

// Evenly spaced sentences.
void TaggingTraining::hold_out(DataSpec& data, std::vector<train::Choice>& choices) {
  const std::int64_t all = std::ssize(sentences_);
  if (data.valid_lines <= 0) {
    data.valid_lines = train::held_out_pairs(all);
    choices.push_back({"valid-lines", fmt::format("{}", data.valid_lines),
                       "no valid-sets; evenly spaced training sentences"});
  }
  if (data.valid_lines >= all)
    fail(ExitStatus::data, "valid-lines: {} of the {} sentences of {} would leave none to train on",
         data.valid_lines, all, data.train_sets[0]);
  std::vector<TaggedSentence> kept;
  for (std::int64_t i = 0; i < all; ++i) {
    TaggedSentence& sentence = sentences_[static_cast<std::size_t>(i)];
    const bool held = (i + 1) * data.valid_lines / all > i * data.valid_lines / all;
    (held ? development_ : kept).push_back(std::move(sentence));
  }
  sentences_ = std::move(kept);
}

void TaggingTraining::choose(TrainingSpec& spec, std::vector<train::Choice>& choices) const {
  ModelSpec& model = spec.model;
  TrainSpec& train = spec.train;
  const auto number = [&](const char* name, auto& setting, auto value, const std::string& why,
                          auto unset) {
    if (setting != unset) return;
    setting = value;
    choices.push_back({name, fmt::format("{}", value), why});
  };
  const auto text = [&](const char* name, std::string& setting, const std::string& value,
                        const std::string& why) {
    if (!setting.empty()) return;
    setting = value;
    choices.push_back({name, value, why});
  };
  const bool is_small = words_ < 50'000;
  const std::string by_size = grouped(words_) + " training words";
  number("dim-emb", model.dim_emb, is_small ? 64 : 128, by_size, 0);
  number("dim-rnn", model.dim_rnn, is_small ? 128 : 256, by_size, 0);
  number("enc-depth", model.enc_depth, 1, "usual", 0);
  if (model.dec_depth == 0) model.dec_depth = 1;  // unused
  for (auto [name, dropout] :
       {std::pair{"dropout-emb", &model.dropout_emb}, {"dropout-rnn", &model.dropout_rnn}})
    number(name, *dropout, 0.4, "usual", -1.0);
  if (model.dropout_readout < 0) model.dropout_readout = 0;  // unused
  if (train::choose_positions(model, spec.data))
    choices.push_back({"positions", fmt::format("{}", model.positions), "max-length"});
  if (train::choose_gate_init(model))
    choices.push_back(
        {"gate-init", std::string(name_of(*model.gate_init)), "each unit's own constant"});
  number("mini-batch-words", spec.data.mini_batch_words, is_small ? 256 : 512, by_size, 0);
  const std::int64_t updates =
      std::max<std::int64_t>(1, words_ / (spec.data.mini_batch_words * train.optimizer_delay));
  const std::string by_epoch = fmt::format("an epoch is about {} updates", grouped(updates));
  const std::optional<double> usual = train::Optimizer::usual_rate(train.optimizer);
  number("learn-rate", train.learn_rate, usual.value_or(0.002), "usual", 0.0);
  text("lr-warmup", train.lr_warmup, usual ? "0u" : fmt::format("{}u", updates), "one epoch");
  text("valid-freq", train.valid_freq, "1e", "every epoch");
  text("save-freq", train.save_freq, train.valid_freq, "with every validation");
  text("disp-freq", train.disp_freq, fmt::format("{}u", std::max<std::int64_t>(1, updates / 2)),
       by_epoch);
  text("after", train.after, "20e", "early stopping mostly comes first");
}

void TaggingTraining::read(TrainingSpec& spec, bool, std::vector<train::Choice>& choices,
                           train::Communicator&) {
  DataSpec& data = spec.data;
  if (data.train_sets.empty())
    fail(ExitStatus::usage,
         "train-sets: no file given, expected one: nmt-train --task tagging FILE");
  if (spec.model.tagging.crf && spec.train.label_smoothing > 0)
    fail(ExitStatus::usage, "label-smoothing: {} has no meaning with crf; expected 0",
         spec.train.label_smoothing);
  sentences_ = app::read(data.train_sets[0], spec.model.tagging).sentences;
  if (data.valid_sets.empty())
    hold_out(data, choices);
  else
    development_ = app::read(data.valid_sets[0], spec.model.tagging).sentences;
  drop_long_sentences(data);
  for (const TaggedSentence& sentence : sentences_) words_ += std::ssize(sentence.words);
  hash_ = hash_of(sentences_);
  development_hash_ = hash_of(development_);
  choose(spec, choices);
}

std::string TaggingTraining::batching(const TrainingSpec& spec) const {
  const DataSpec& data = spec.data;
  return fmt::format("{} {} sentences; seed {}, mini-batch {}, mini-batch-words {}, maxi-batch {}",
                     hash_, sentences_.size(), data.seed, data.mini_batch, data.mini_batch_words,
                     data.maxi_batch);
}

VocabularyPair TaggingTraining::make_vocabularies(const TrainingSpec& spec, train::Heartbeat&) {
  std::map<std::string, std::int64_t> counts;
  std::set<std::string> labels;
  for (const TaggedSentence& sentence : sentences_) {
    for (const std::string& word : sentence.words) ++counts[word];
    labels.insert(sentence.tags.begin(), sentence.tags.end());
  }
  if (labels.size() < 2)
    fail(ExitStatus::data, "{}: all words have the tag {}; expected at least two tags",
         spec.data.train_sets[0], *labels.begin());
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
  tagger_.emplace(spec.model, words.size(), static_cast<int>(names.size()), *forms_,
                  device.context(), spec.train.seed);
  batches_.emplace(corpus_, spec.data, Share{device.ranks().rank(), device.ranks().size()});
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
  return fmt::format("tag with: nmt-tag -m {} < TEXT > TAGS", directory);
}

}  // namespace nmt::app
