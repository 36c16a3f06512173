#include "app/train/tasks/language_model_training.h"

#include "app/train/tasks/idle_options.h"
#include "core/error.h"
#include "core/hash/lines_hash.h"
#include "core/log.h"
#include "core/nlohmann.h"
#include "core/shell_word.h"
#include "text/vocabulary/train_vocabulary.h"
#include "text/vocabulary/word_vocabulary.h"
#include "train/reporter.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace nmt::app {
namespace {

// Settings by the size of the text, whose large models are those of Zaremba et al. 2014.
struct Row {
  std::int64_t below;  // bytes
  int width, depth;
  double dropout;
};
constexpr Row rows[] = {{200'000, 128, 1, 0.3}, {20'000'000, 256, 2, 0.4}, {-1, 512, 2, 0.2}};

const Row& row_of(std::int64_t bytes) {
  for (const Row& row : rows)
    if (row.below < 0 || bytes < row.below) return row;
  return rows[std::size(rows) - 1];
}

// Replaces values that are not set, with a reason each.
class Chooser {
 public:
  explicit Chooser(std::vector<train::Choice>& choices) : choices_(choices) {}
  template <class Setting, class Value>
  void choose(const char* name, Setting& setting, const Value& value, const std::string& why,
              const Setting& unset = {}) {
    if (setting != unset) return;
    setting = value;
    note(name, fmt::format("{}", value), why);
  }
  void note(const char* name, const std::string& value, const std::string& why) {
    choices_.push_back({name, value, why});
  }

 private:
  std::vector<train::Choice>& choices_;
};

void require_one_text(const DataSpec& data, int ranks) {
  if (ranks > 1)
    fail(ExitStatus::usage, "task: a language model trains in one process, not in {}", ranks);
  if (data.vocabs.size() > 1 || data.dim_vocabs.size() > 1)
    fail(ExitStatus::usage, "{}: a language model has one vocabulary, not {}",
         data.vocabs.size() > 1 ? "vocabs" : "dim-vocabs",
         std::max(data.vocabs.size(), data.dim_vocabs.size()));
}

void choose_model(TrainingSpec& spec, std::int64_t bytes, std::vector<train::Choice>& choices) {
  ModelSpec& model = spec.model;
  DataSpec& data = spec.data;
  const Row& row = row_of(bytes);
  const std::string by_size = fmt::format("{:.1f} MB of text", static_cast<double>(bytes) * 1e-6);
  Chooser chooser(choices);
  chooser.choose("dim-emb", model.dim_emb, row.width, by_size);
  chooser.choose("dim-rnn", model.dim_rnn, row.width, by_size);
  chooser.choose("dec-depth", model.dec_depth, row.depth, by_size);
  if (model.enc_depth == 0) model.enc_depth = 1;  // unused
  if (train::choose_gate_init(model))
    chooser.note("gate-init", std::string(name_of(*model.gate_init)), "each unit's own constant");
  if (train::choose_positions(model, data))
    chooser.note("positions", fmt::format("{}", model.positions), "windows continue a text");
  chooser.choose("dropout-emb", model.dropout_emb, row.dropout, by_size, -1.0);
  chooser.choose("dropout-rnn", model.dropout_rnn, row.dropout, by_size, -1.0);
  chooser.choose("dropout-readout", model.dropout_readout, 0.0, by_size, -1.0);
  if (data.dim_vocabs.empty() && data.vocabs.empty()) {
    data.dim_vocabs = {data.vocab_type == VocabularyKind::words ? 50'000 : 8'000};
    chooser.note("dim-vocabs", fmt::format("{}", data.dim_vocabs[0]), "usual");
  }
}

void choose_schedule(TrainingSpec& spec, std::int64_t bytes, std::vector<train::Choice>& choices) {
  DataSpec& data = spec.data;
  TrainSpec& train = spec.train;
  const int bptt = spec.model.language_model.bptt;
  if (data.mini_batch_words == 0)  // at most what the option allows; it is only recorded
    data.mini_batch_words =
        static_cast<int>(std::min<std::int64_t>(std::int64_t{data.mini_batch} * bptt, 100'000'000));
  const double updates = std::max(
      1.0, static_cast<double>(bytes) / 5.0 /
               (static_cast<double>(data.mini_batch) * bptt * std::max(1, train.optimizer_delay)));
  Chooser chooser(choices);
  train::choose_learning_rate(train, 0.002, "usual", "100u", "usual", choices);
  chooser.choose("valid-freq", train.valid_freq, std::string("1e"), "every epoch");
  train::choose_save_freq(train, "1e", "every epoch", choices);
  chooser.choose("disp-freq", train.disp_freq,
                 fmt::format("{}u", std::clamp<std::int64_t>(std::llround(updates / 5), 10, 500)),
                 fmt::format("an epoch is about {} updates", grouped(std::llround(updates))));
  chooser.choose("after", train.after, std::string("40e"), "early stopping mostly comes first");
}

}  // namespace

std::vector<TrainingTask::Default> LanguageModelTraining::defaults() const {
  return {{"valid-metrics", {"perplexity", "cross-entropy"}},
          {"label-smoothing", {"0"}},
          {"mini-batch", {"20"}},  // streams, as Zaremba et al. 2014
          {"schedule", {"constant"}},
          {"lr-decay", {"0.5"}},
          {"lr-decay-start", {"1", "1"}}};
}

std::vector<std::string> LanguageModelTraining::idle_options() const {
  return idle_in_language_models();
}

// The last lines: neighbors belong to one text.
void LanguageModelTraining::hold_out(TrainingSpec& spec, std::vector<train::Choice>& choices) {
  DataSpec& data = spec.data;
  if (data.valid_lines <= 0) {
    data.valid_lines = train::held_out_pairs(lines_);
    choices.push_back({"valid-lines", fmt::format("{}", data.valid_lines),
                       "no valid-sets; the last lines of the training text"});
  }
  if (data.valid_lines >= lines_)
    fail(ExitStatus::data, "valid-lines: {} of the {} lines of {} would leave no training text",
         data.valid_lines, lines_, text_->path());
  lines_ -= data.valid_lines;
  std::string storage;
  for (std::int64_t i = lines_; i < text_->lines(); ++i)
    development_.emplace_back(text_->line(i, storage));
}

void LanguageModelTraining::read_texts(TrainingSpec& spec, std::vector<train::Choice>& choices) {
  const DataSpec& data = spec.data;
  text_.emplace(data.train_sets[0]);
  if (text_->lines() == 0)
    fail(ExitStatus::data, "{}: is empty; expected one sentence per line", text_->path());
  text_->notes().warn(text_->path());
  lines_ = text_->lines();
  if (data.valid_sets.empty()) {
    hold_out(spec, choices);
  } else {
    const TextFile file(data.valid_sets[0]);
    file.notes().warn(file.path());
    std::string storage;
    for (std::int64_t i = 0; i < file.lines(); ++i)
      development_.emplace_back(file.line(i, storage));
  }
  log::info("training text: {} lines of {}; development set: {} lines{}", grouped(lines_),
            text_->path(), grouped(std::ssize(development_)),
            data.valid_sets.empty() ? "" : " of " + data.valid_sets[0]);
}

void LanguageModelTraining::read(TrainingSpec& spec, bool, std::vector<train::Choice>& choices,
                                 train::Communicator& ranks) {
  require_one_text(spec.data, ranks.size());
  PerplexityValidator::check(spec.train.valid_metrics);
  read_texts(spec, choices);
  if (spec.data.mini_batch == 0)
    fail(ExitStatus::usage, "mini-batch: a language model needs at least one stream");
  const auto bytes = static_cast<std::int64_t>(text_->bytes());
  choose_model(spec, bytes, choices);
  choose_schedule(spec, bytes, choices);
}

void LanguageModelTraining::try_model(const TrainingSpec& spec) const {
  LanguageModel(spec.model, any_vocabulary, Context{}, spec.train.seed, 0,
                LanguageModel::Weights::none);
}

std::string LanguageModelTraining::batching_hash(const TrainingSpec& spec) const {
  return fmt::format("{} {} lines; streams {}, steps {}", text_identity().current, lines_,
                     spec.data.mini_batch, spec.model.language_model.bptt);
}

std::string LanguageModelTraining::development_hash() const {
  LinesHash hash;
  for (const std::string& line : development_) hash.add(line);
  return hash.text();
}

VocabularyPair LanguageModelTraining::make_vocabularies(const TrainingSpec& spec,
                                                        train::Heartbeat& heartbeat) {
  const DataSpec& data = spec.data;
  std::shared_ptr<const Vocabulary> vocabulary;
  if (!data.vocabs.empty()) {
    vocabulary = std::make_shared<const Vocabulary>(Vocabulary::load(data.vocabs[0]));
  } else {
    heartbeat.activity("training the vocabulary");
    VocabularyTraining training;
    training.size = data.dim_vocabs[0];
    training.max_lines = data.sentencepiece_max_lines;
    const auto train =
        data.vocab_type == VocabularyKind::words ? train_word_vocabulary : train_vocabulary;
    std::string storage;
    TrainedVocabulary trained = train(
        lines_, [&](std::int64_t i) { return text_->line(i, storage); }, training, text_->path());
    log::info("vocabulary: {} {} from {} lines{}", grouped(trained.vocabulary.size()),
              data.vocab_type == VocabularyKind::words ? "words" : "pieces",
              grouped(trained.lines_used),
              trained.lines_too_long > 0
                  ? fmt::format(", {} lines over {} bytes skipped", grouped(trained.lines_too_long),
                                training.max_line_bytes)
                  : "");
    vocabulary = std::make_shared<const Vocabulary>(std::move(trained.vocabulary));
  }
  return {vocabulary, vocabulary};
}

void LanguageModelTraining::make(const TrainingSpec& spec, const VocabularyPair& vocabularies,
                                 TrainingDevice& device, const train::StopRequest& stop) {
  const Vocabulary& vocabulary = *vocabularies.target;
  vocabulary_size_ = vocabulary.size();
  const DataSpec& data = spec.data;
  stream_.emplace(*text_, lines_, vocabulary, data.mini_batch, spec.model.language_model.bptt);
  log::info("training text: {} tokens in {} lines{}", grouped(stream_->tokens()),
            grouped(stream_->sentences()),
            stream_->blank_lines() > 0
                ? fmt::format(", without {} blank lines", grouped(stream_->blank_lines()))
                : "");
  model_.emplace(spec.model, vocabulary.size(), device.context(), spec.train.seed, data.mini_batch);
  const std::string name =
      spec.data.valid_sets.empty() ? "the held-out lines" : spec.data.valid_sets[0];
  validator_.emplace(spec.model, spec.train.valid_metrics, vocabulary, development_, name,
                     device.compute(), stop);
}

std::string LanguageModelTraining::summary(const TrainingSpec& spec) const {
  return fmt::format("language model, {} layers of {}", spec.model.dec_depth, spec.model.dec_cell);
}

nlohmann::ordered_json LanguageModelTraining::record(const TrainingSpec& spec) {
  return {{"data",
           {{"files", spec.data.train_sets},
            {"lines", lines_},
            {"tokens", stream_->tokens()},
            {"development_files", spec.data.valid_sets},
            {"development_lines", std::ssize(development_)},
            {"pieces", vocabulary_size_},
            {"weights", model_->parameters().elements()}}}};
}

std::string LanguageModelTraining::next_step(const std::string& directory) const {
  return fmt::format("score with: nmt-score -m {} TEXT", shell_word(directory));
}

}  // namespace nmt::app
