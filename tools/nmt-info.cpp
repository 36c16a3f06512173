// nmt-info MODEL_DIR, or nmt-info --config FILE...: what a model weighs and costs, trained or not
// yet.

#include "app/info/architecture_list.h"
#include "app/info/info_report.h"
#include "app/program.h"
#include "app/train/train_settings.h"
#include "app/train/training_text.h"
#include "config/fields.h"
#include "core/error.h"
#include "model/architecture.h"
#include "model/directory/model_directory.h"
#include "model/directory/stored_weights.h"
#include "train/autoconfig.h"
#include "train/optimization/optimizer.h"

#include <algorithm>

namespace nmt::app {
namespace {

struct InfoOptions {
  bool json = false;
  bool architectures = false;
  int sentence_length = 25;
};

// Whether --model was given beside the command line's other arguments; in a file it only names
// where a training goes.
bool asks_directory(const config::Settings& settings) {
  return settings.level("model") > 0 &&
         settings.level("model") == std::max(1, settings.level("config"));
}

// A directory knows its model: what says something else of it contradicts it.
Dtype read_directory(TrainSettings& settings, ModelInfo& info) {
  std::vector<std::string> names{"config", "vocabs", "dim-vocabs", "joint-vocab"};
  for (const config::Option& option : config::fields(settings.model)) names.push_back(option.name);
  for (const std::string& name : names)
    if (settings.settings.is_set(name))
      fail(ExitStatus::usage,
           "{}: a model directory has its own settings; give --model {} or --{}, not both",
           settings.train.model, settings.train.model, name);
  const ModelDirectory directory = ModelDirectory::open(settings.train.model);
  info.origin = directory.path();
  info.spec = directory.spec();
  info.source_vocabulary = directory.source_size();
  info.target_vocabulary = directory.target_size();
  info.precision = precision_name(directory.weights());
  return directory.weights();
}

void read_settings(TrainSettings& settings, ModelInfo& info) {
  ModelSpec& spec = settings.model;
  DataSpec& data = settings.data;
  settings.check();
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
  if (const char* name = missing()) {
    if (data.train_sets.empty())
      fail(ExitStatus::usage,
           "{}: not set, and nmt-train chooses it by the training text: give it, or --train-sets; "
           "or a model directory",
           name);
    std::vector<train::Choice> choices;
    const TrainingText text = open_training_text(data, choices);
    train::choose(text.size(), spec, data, settings.train);
  }
  train::choose_positions(spec, data);
  train::choose_attention_query(spec);
  if (!settings.ties_by_hand()) train::choose_tying(spec, data);
  info.origin = "settings";
  info.spec = spec;
  if (data.vocabs.empty()) {
    info.source_vocabulary = data.dim_vocabs.front();
    info.target_vocabulary = data.dim_vocabs.back();
  } else {
    info.source_vocabulary = Vocabulary::load(data.vocabs.front()).size();
    info.target_vocabulary = Vocabulary::load(data.vocabs.back()).size();
  }
}

ExitStatus tell(TrainSettings& settings, const InfoOptions& options) {
  if (options.architectures) {
    print(options.json ? architectures_json() : architectures_text());
    return ExitStatus::ok;
  }
  ModelInfo info;
  Dtype weights = Dtype::f32;
  if (asks_directory(settings.settings))
    weights = read_directory(settings, info);
  else
    read_settings(settings, info);
  if (dump_if_asked(settings.settings)) return ExitStatus::ok;
  // What is chosen by the training text and not set: dropout of some kind, 4,096 target tokens a
  // batch.
  for (double* dropout :
       {&info.spec.dropout_emb, &info.spec.dropout_rnn, &info.spec.dropout_readout})
    if (*dropout < 0) *dropout = 0.1;
  Model model(info.spec, info.source_vocabulary, info.target_vocabulary, Context{}, 1);
  info.inventory = take_inventory(model);
  const DataSpec& data = settings.data;
  const std::int64_t length = options.sentence_length,
                     words = data.mini_batch_words > 0 ? data.mini_batch_words : 4096;
  std::int64_t sentences = std::max<std::int64_t>(1, words / length);
  if (data.mini_batch > 0) sentences = std::min<std::int64_t>(sentences, data.mini_batch);
  info.training_batch = {sentences, length, length};
  info.decoding_batch = {settings.search.mini_batch, length, length};
  info.beam = settings.search.beam_size;
  info.optimizer = name_of(settings.train.optimizer);
  info.training = training_memory(model, info.inventory, info.training_batch,
                                  train::Optimizer::states(settings.train),
                                  settings.train.exponential_smoothing > 0);
  info.decoding = decoding_memory(info.spec, info.inventory, info.target_vocabulary,
                                  info.decoding_batch, info.beam);
  info.decoding.weights = stored_bytes(model.parameters(), weights);
  print(options.json ? json_of(info) : text_of(info));
  return ExitStatus::ok;
}

}  // namespace
}  // namespace nmt::app

int main(int argc, char** argv) {
  using nmt::config::Option;
  nmt::app::TrainSettings settings(
      "nmt-info", "[OPTIONS] [MODEL]",
      "tells the size, cost and memory of a model, of a directory or as nmt-train would make it",
      "model");
  nmt::app::InfoOptions options;
  settings.settings.add(nmt::config::in_group(
      "information", {
                         Option("json", &options.json, "print the numbers as JSON"),
                         Option("architectures", &options.architectures,
                                "describe every architecture of --type, and exit"),
                         Option("sentence-length", &options.sentence_length,
                                "tokens of a sentence that memory is estimated for")
                             .range(1, 100000),
                     }));
  return nmt::app::run_tool(argc, argv, settings.settings,
                            [&] { return nmt::app::tell(settings, options); });
}
