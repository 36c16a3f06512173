#include "app/info/info.h"

#include "app/common_options.h"
#include "app/info/architecture_list.h"
#include "app/info/task_model_info.h"
#include "app/train/resumed_settings.h"
#include "app/train/tasks/training_task.h"
#include "app/train/training_text.h"
#include "config/fields.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/nlohmann.h"
#include "model/architecture.h"
#include "model/directory/from_settings.h"
#include "model/directory/model_directory.h"
#include "model/directory/stored_weights.h"
#include "tasks/classification/labeled_corpus.h"
#include "tasks/tagging/tagged_corpus.h"
#include "train/autoconfig.h"
#include "train/optimization/optimizer.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nmt::app {
namespace {

// The settings of the training that made the model of a directory; "" where it has no state of a
// training, as after nmt-convert.
std::string settings_of_training(const ModelDirectory& directory) {
  const std::optional<StoredCheckpoint> newest = directory.latest();
  if (!newest || !std::filesystem::exists(newest->folder() + "/state.json")) return "";
  const auto state = nlohmann::json::parse(newest->read_info(), nullptr, false);
  if (!state.is_object() || !state.contains("settings")) return "";
  if (!state["settings"].is_string())
    fail(ExitStatus::data, "{}/state.json: settings: expected a text", newest->folder());
  return state["settings"];
}

// Reads the model of a directory. Settings that describe another model are errors.
void read_directory(TrainingSpec& spec, ModelInfo& info) {
  std::vector<std::string> names{"config", "dim-labels"};
  for (const config::Option& option : config::fields(spec.data))
    if (option.role == config::Role::vocabulary) names.push_back(option.name);
  for (const config::Option& option : config::fields(spec.model)) names.push_back(option.name);
  for (const std::string& name : names)
    if (spec.is_given(name))
      fail(ExitStatus::usage, "{}: --model {} has its own settings; give --model or --{}, not both",
           spec.train.model, spec.train.model, name);
  const ModelDirectory directory = ModelDirectory::open(spec.train.model);
  info.origin = directory.path();
  info.spec = directory.spec();
  info.source_vocabulary = directory.source_size();
  info.target_vocabulary = directory.target_size();
  // The target vocabulary of a tagger or classifier has special symbols besides the labels.
  if (info.spec.task == Task::tagging)
    info.target_vocabulary =
        static_cast<int>(label_names(*directory.load_vocabularies().target).size());
  if (info.spec.task == Task::classification)
    info.target_vocabulary =
        static_cast<int>(class_names(*directory.load_vocabularies().target).size());
  info.precision = precision_name(directory.weights());
  const std::string yaml = settings_of_training(directory);
  if (!yaml.empty())
    adopt(spec, yaml,
          {"mini-batch", "mini-batch-words", "optimizer", "optimizer-params", "average-after",
           "exponential-smoothing"});
}

int symbols_of(const DataSpec& data) {
  return data.vocabs.empty() ? data.dim_vocabs.front()
                             : Vocabulary::load(data.vocabs.front()).size();
}

// The settings of a model of another task than translation: all sizes must be given.
void read_task_settings(TrainingSpec& settings, int labels, ModelInfo& info) {
  ModelSpec& spec = settings.model;
  const DataSpec& data = settings.data;
  const bool has_labels = spec.task != Task::language_model;
  const auto missing = [&]() -> const char* {
    if (spec.dim_emb == 0) return "dim-emb";
    if (spec.dim_rnn == 0) return "dim-rnn";
    if (has_labels && spec.enc_depth == 0) return "enc-depth";
    if (!has_labels && spec.dec_depth == 0) return "dec-depth";
    if (data.vocabs.empty() && data.dim_vocabs.empty()) return "dim-vocabs";
    return has_labels && labels == 0 ? "dim-labels" : nullptr;
  };
  if (const char* const name = missing())
    fail(
        ExitStatus::usage,
        "{}: not set, and nmt-train chooses it by the training text: give it, or a model directory",
        name);
  if (data.vocabs.size() > 1 || data.dim_vocabs.size() > 1)
    fail(ExitStatus::usage, "{}: {} has one vocabulary, not {}",
         data.vocabs.size() > 1 ? "vocabs" : "dim-vocabs", model_of(spec.task),
         std::max(data.vocabs.size(), data.dim_vocabs.size()));
  // Without effect in one of the tasks, but part of the spec.
  for (int* depth : {&spec.enc_depth, &spec.dec_depth})
    if (*depth == 0) *depth = 1;
  std::vector<std::string> idle = make_training_task(spec.task)->idle_options();
  std::erase(idle, "dim-vocabs");  // a tagger's words, which nmt-train counts itself
  check_effects(settings, idle);
  train::choose_positions(spec, data);
  train::choose_gate_init(spec);
  info.source_vocabulary = symbols_of(data);
  info.target_vocabulary = has_labels ? labels : info.source_vocabulary;
}

bool has_text(const DataSpec& data) {
  std::error_code error;
  return !data.train_sets.empty() &&
         std::ranges::all_of(data.train_sets, [&](const std::string& path) {
           return std::filesystem::is_regular_file(path, error);
         });
}

void read_translation_settings(TrainingSpec& settings, ModelInfo& info) {
  ModelSpec& spec = settings.model;
  DataSpec& data = settings.data;
  const LayerLimits layers = architecture_of(spec).common_layers();
  if (layers.min == layers.max)
    for (int* depth : {&spec.enc_depth, &spec.dec_depth})
      if (*depth == 0) *depth = layers.min;
  const auto missing = [&]() -> const char* {
    if (spec.dim_emb == 0) return "dim-emb";
    if (spec.dim_rnn == 0) return "dim-rnn";
    if (spec.enc_depth == 0) return "enc-depth";
    if (spec.dec_depth == 0) return "dec-depth";
    return data.vocabs.empty() && data.dim_vocabs.empty() ? "dim-vocabs" : nullptr;
  };
  const char* const name = missing();
  if (name && data.train_sets.empty())
    fail(ExitStatus::usage,
         "{}: not set, and nmt-train chooses it by the training text: give it, or --train-sets; or "
         "a model directory",
         name);
  const bool unit_is_open =
      !settings.unit_given() && !architecture_of(spec).has_blocks() && !data.train_sets.empty();
  // Without the text, as where a shipped file names it, a model of given sizes is described with
  // the batch and the moving average of these settings alone.
  if (name || unit_is_open || has_text(data)) {
    std::vector<train::Choice> choices;
    const TrainingText text = open_training_text(data, spec.context_sentences, choices);
    if (unit_is_open) train::choose_unit(text.size(), spec);
    if (!settings.is_given("exponential-smoothing"))
      train::choose_smoothing(text.size(), settings.train);
    train::choose(text.size(), spec, data, settings.train);
  }
  if (settings.unit_given() || !unit_is_open) check_effects(settings);
  train::choose_positions(spec, data);
  train::choose_gate_init(spec);
  train::choose_attention_query(spec);
  train::choose_embedding_scale(spec);
  if (!settings.ties_given()) train::choose_tying(spec, data);
  info.source_vocabulary = symbols_of(data);
  info.target_vocabulary =
      data.vocabs.empty() ? data.dim_vocabs.back() : Vocabulary::load(data.vocabs.back()).size();
}

void read_settings(InfoSpec& spec, ModelInfo& info) {
  TrainingSpec& settings = spec.training;
  check(settings);
  const Task task = settings.model.task;
  if (spec.labels > 0 && task != Task::tagging && task != Task::classification)
    fail(ExitStatus::usage, "dim-labels: {} has no labels", model_of(task));
  if (task == Task::translation)
    read_translation_settings(settings, info);
  else
    read_task_settings(settings, spec.labels, info);
  info.origin = "settings";
  info.spec = settings.model;
}

}  // namespace

std::vector<config::Option> fields(InfoSpec& spec) {
  using config::Option;
  std::vector<Option> training = fields(spec.training);
  config::named(training, "model").help =
      "directory of the model to describe; without it, the model that nmt-train would create";
  return joined(
      {std::move(training),
       config::in_group("information",
                        {Option("json", &spec.json, "print JSON"),
                         Option("architectures", &spec.architectures, "describe all architectures"),
                         Option("dim-labels", &spec.labels,
                                "number of tags or labels, of a tagger or classifier; 0: that of "
                                "the model directory")
                             .range(0, 1000000),
                         Option("sentence-length", &spec.sentence_length,
                                "sentence length in tokens for the memory estimate")
                             .range(1, 100000)})});
}

// On the command line, --model names the model to describe. In a configuration file it only names
// the directory of a training.
void note_given(InfoSpec& spec, const config::Settings& settings) {
  note_given(spec.training, settings);
  const int level = settings.level("model");
  spec.from_directory = level > 0 && level == std::max(1, settings.level("config"));
  spec.sentence_length_given = settings.is_typed("sentence-length");
}

void prepare_dump(InfoSpec& spec, config::Settings& settings) {
  if (settings.asks_dump().empty()) return;
  if (spec.from_directory)
    fail(ExitStatus::usage,
         "dump-config: {} has settings of its own, in config.json; give --dump-config without it",
         spec.training.train.model);
  spec.training.spread.clear();  // a dump has no shorthands
  std::vector<std::string> idle = make_training_task(spec.training.model.task)->idle_options();
  std::erase(idle, "dim-vocabs");
  settings.leave_out(idle);
}

ModelInfo find_model(InfoSpec& spec) {
  ModelInfo info;
  if (spec.from_directory)
    read_directory(spec.training, info);
  else
    read_settings(spec, info);
  return info;
}

void refuse_settings_of_models(const config::Settings& settings) {
  InfoSpec spec;
  std::string typed;
  for (const config::Option& option : fields(spec))
    if (settings.is_typed(option.name) && option.name != "json" && option.name != "architectures")
      typed += fmt::format("{}{} (architectures is on)", typed.empty() ? "" : ", ", option.name);
  report_idle_options("", typed);
}

std::string architectures(const InfoSpec& spec) {
  return spec.json ? architectures_json() : architectures_text();
}

namespace {

std::string described(const InfoSpec& spec, ModelInfo info) {
  // Unset values that nmt-train chooses by corpus size do not affect the sizes: any dropout, 4,096
  // target tokens per batch.
  for (double* dropout :
       {&info.spec.dropout_emb, &info.spec.dropout_rnn, &info.spec.dropout_readout})
    if (*dropout < 0) *dropout = 0.1;
  if (info.spec.task != Task::translation) return task_model_info(spec, std::move(info));
  Model model(info.spec, info.source_vocabulary, info.target_vocabulary, Context{}, 1);
  info.inventory = take_inventory(model);
  const DataSpec& data = spec.training.data;
  const std::int64_t length = spec.sentence_length,
                     words = data.mini_batch_words > 0 ? data.mini_batch_words : 4096;
  std::int64_t sentences = std::max<std::int64_t>(1, words / length);
  if (data.mini_batch > 0) sentences = std::min<std::int64_t>(sentences, data.mini_batch);
  info.training_batch = {sentences, length, length};
  info.decoding_batch = {spec.training.search.mini_batch, length, length};
  info.beam = spec.training.search.beam_size;
  info.optimizer = name_of(spec.training.train.optimizer);
  info.training = training_memory(model, info.inventory, info.training_batch,
                                  train::Optimizer::states(spec.training.train),
                                  train::Optimizer::has_average(spec.training.train));
  const Dtype weights = *parse_weights(info.precision);
  info.decoding = decoding_memory(info.spec, info.inventory, info.target_vocabulary,
                                  info.decoding_batch, info.beam, weights);
  info.decoding.weights = stored_bytes(model.parameters(), weights);
  return spec.json ? json_of(info) : text_of(info);
}

}  // namespace

std::string info(const InfoSpec& spec, ModelInfo info) {
  if (info.spec.task != Task::translation && spec.sentence_length_given)
    fail(ExitStatus::usage, "sentence-length: the memory estimate of {} has no activations",
         model_of(info.spec.task));
  if (!spec.from_directory) return described(spec, std::move(info));
  const std::string directory = info.origin;
  return from_settings(directory, [&] { return described(spec, std::move(info)); });
}

}  // namespace nmt::app
