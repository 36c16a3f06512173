#include "app/train/tasks/classification_training.h"

#include "app/train/tasks/error_rate_validator.h"
#include "core/error.h"
#include "core/log.h"
#include "core/number_text.h"
#include "text/train_vocabulary.h"
#include "text/word_vocabulary.h"
#include "train/optimization/optimizer.h"

#include <algorithm>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

namespace nmt::app {
namespace {

std::string hash_of(const LabeledTexts& texts) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const LabeledText& example : texts.examples)
    for (const std::string* text : {&example.label, &example.text, &example.second}) {
      for (const char c : *text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
      hash = (hash ^ '\n') * 0x100000001b3u;
    }
  return fmt::format("{:016x}", hash);
}

LabeledTexts read(const std::string& path) {
  LabeledTexts texts = read_labeled_text(path);
  for (const LabeledText& example : texts.examples)
    if (example.label.find_first_of(" \v\f\r") != std::string::npos)
      fail(ExitStatus::data, "{}: line {}: the label '{}' has a space", path, example.line,
           example.label.substr(0, 80));
  log::info("{}: {} labeled {}", path, grouped(std::ssize(texts.examples)),
            texts.has_pairs ? "pairs of texts" : "texts");
  return texts;
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
  return {"type",
          "context-aware",
          "dense-first-decoder-layer",
          "dim-enc-upper",
          "dec-depth",
          "attention",
          "heads",
          "attention-projections",
          "upper-context",
          "attention-query",
          "tied-embeddings",
          "tied-embeddings-src",
          "tied-embeddings-all",
          "joint-vocab",
          "max-length-unit",
          "max-length-crop",
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

// Evenly spaced texts.
void ClassificationTraining::hold_out(DataSpec& data, std::vector<train::Choice>& choices) {
  const std::int64_t all = std::ssize(texts_.examples);
  if (data.valid_lines <= 0) {
    data.valid_lines = train::held_out_pairs(all);
    choices.push_back({"valid-lines", fmt::format("{}", data.valid_lines),
                       "no valid-sets; evenly spaced training texts"});
  }
  if (data.valid_lines >= all)
    fail(ExitStatus::data, "valid-lines: {} of the {} texts of {} would leave none to train on",
         data.valid_lines, all, data.train_sets[0]);
  std::vector<LabeledText> kept;
  for (std::int64_t i = 0; i < all; ++i) {
    LabeledText& example = texts_.examples[static_cast<std::size_t>(i)];
    const bool held = (i + 1) * data.valid_lines / all > i * data.valid_lines / all;
    (held ? development_.examples : kept).push_back(std::move(example));
  }
  texts_.examples = std::move(kept);
  development_.has_pairs = texts_.has_pairs;
}

void ClassificationTraining::choose(TrainingSpec& spec, std::vector<train::Choice>& choices) const {
  ModelSpec& model = spec.model;
  DataSpec& data = spec.data;
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
  const bool is_small = bytes_ < 1'000'000;
  const std::string by_size =
      fmt::format("{:.1f} MB of training text", static_cast<double>(bytes_) * 1e-6);
  number("dim-emb", model.dim_emb, is_small ? 64 : 128, by_size, 0);
  number("dim-rnn", model.dim_rnn, is_small ? 64 : 128, by_size, 0);
  number("enc-depth", model.enc_depth, 1, "usual", 0);
  if (model.dec_depth == 0) model.dec_depth = 1;  // unused
  for (auto [name, dropout] :
       {std::pair{"dropout-emb", &model.dropout_emb}, {"dropout-rnn", &model.dropout_rnn}})
    number(name, *dropout, 0.4, "usual", -1.0);
  if (model.dropout_readout < 0) model.dropout_readout = 0;  // unused
  if (train::choose_positions(model, data))
    choices.push_back({"positions", fmt::format("{}", model.positions), "max-length"});
  if (train::choose_gate_init(model))
    choices.push_back(
        {"gate-init", std::string(name_of(*model.gate_init)), "each unit's own constant"});
  if (data.dim_vocabs.empty() && data.vocabs.empty()) {
    data.dim_vocabs = {is_small ? 2'000 : 8'000};
    choices.push_back({"dim-vocabs", fmt::format("{}", data.dim_vocabs[0]), by_size});
  }
  number("mini-batch-words", data.mini_batch_words, is_small ? 512 : 1024, by_size, 0);
  constexpr std::int64_t bytes_a_token = 4;
  const std::int64_t updates = std::max<std::int64_t>(
      1, bytes_ / bytes_a_token / (data.mini_batch_words * train.optimizer_delay));
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

void ClassificationTraining::read(TrainingSpec& spec, bool, std::vector<train::Choice>& choices,
                                  train::Communicator&) {
  DataSpec& data = spec.data;
  if (data.train_sets.empty())
    fail(ExitStatus::usage,
         "train-sets: no file given, expected one: nmt-train --task classification FILE");
  if (data.vocabs.size() > 1 || data.dim_vocabs.size() > 1)
    fail(ExitStatus::usage, "{}: a classifier has one vocabulary, not {}",
         data.vocabs.size() > 1 ? "vocabs" : "dim-vocabs",
         std::max(data.vocabs.size(), data.dim_vocabs.size()));
  texts_ = app::read(data.train_sets[0]);
  if (data.valid_sets.empty())
    hold_out(data, choices);
  else
    development_ = app::read(data.valid_sets[0]);
  if (development_.has_pairs != texts_.has_pairs)
    fail(ExitStatus::data, "{} has {}, but {} has {}", data.train_sets[0],
         texts_.has_pairs ? "pairs of texts" : "texts", data.valid_sets[0],
         development_.has_pairs ? "pairs" : "texts");
  for (const LabeledText& example : texts_.examples)
    bytes_ += std::ssize(example.text) + std::ssize(example.second);
  hash_ = hash_of(texts_);
  development_hash_ = hash_of(development_);
  choose(spec, choices);
}

std::string ClassificationTraining::batching(const TrainingSpec& spec) const {
  const DataSpec& data = spec.data;
  return fmt::format(
      "{} {} texts; seed {}, max-length {}, mini-batch {}, mini-batch-words {}, maxi-batch {}",
      hash_, texts_.examples.size(), data.seed, data.max_length, data.mini_batch,
      data.mini_batch_words, data.maxi_batch);
}

VocabularyPair ClassificationTraining::make_vocabularies(const TrainingSpec& spec,
                                                         train::Heartbeat& heartbeat) {
  const DataSpec& data = spec.data;
  const std::vector<std::string> all = labels_of(texts_);
  const std::set<std::string> labels(all.begin(), all.end());
  if (labels.size() < 2)
    fail(ExitStatus::data, "{}: all texts have the label {}; expected at least two labels",
         data.train_sets[0], *labels.begin());
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
    const auto train =
        data.vocab_type == VocabularyKind::words ? train_word_vocabulary : train_vocabulary;
    vocabulary = std::make_shared<const Vocabulary>(
        train(
            std::ssize(lines), [&](std::int64_t i) { return lines[static_cast<std::size_t>(i)]; },
            training, "vocabulary")
            .vocabulary);
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
  classifier_.emplace(spec.model, vocabulary.size(), static_cast<int>(names.size()),
                      device.context(), spec.train.seed);
  batches_.emplace(corpus_, spec.data, Share{device.ranks().rank(), device.ranks().size()});
  validator_ = std::make_unique<ErrorRateValidator>(
      spec.model, vocabulary.size(), names,
      encode(development_.examples, vocabulary, names, max_classified_tokens),
      labels_of(development_), device.compute(), stop);
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
  return fmt::format("classify with: nmt-classify {} < TEXT > LABELS", directory);
}

}  // namespace nmt::app
