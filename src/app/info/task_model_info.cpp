#include "app/info/task_model_info.h"

#include "core/error.h"
#include "core/nlohmann.h"
#include "model/directory/stored_weights.h"
#include "model/encoder.h"
#include "tasks/classification/classifier.h"
#include "tasks/language_model/language_model.h"
#include "tasks/tagging/tagger.h"
#include "text/vocabulary/word_vocabulary.h"
#include "train/optimization/optimizer.h"
#include "train/reporter.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace nmt::app {
namespace {

using Json = nlohmann::ordered_json;

// What differs between the tasks.
struct TaskModel {
  std::string text;  // the model in a few words
  Json sizes;        // what the JSON has besides counts and memory
  std::string cell;  // the unit
  const char* use;   // what the model does after training
};

std::string layers_text(int depth) {
  return fmt::format("{} layer{}", depth, depth == 1 ? "" : "s");
}

std::string widths_text(const ModelSpec& s) {
  return fmt::format("widths {} (embeddings) and {} (units)", s.dim_emb, s.dim_rnn);
}

void count(ModelInfo& info, ParameterSet& parameters, Inventory inventory, const TrainSpec& train) {
  info.inventory = std::move(inventory);
  std::erase_if(info.inventory.parts, [](const Inventory::Part& part) {
    return part.parameters == 0 && part.products == 0;
  });
  TrainingMemory& memory = info.training;
  memory.weights = memory.gradients = stored_bytes(parameters, Dtype::f32);
  memory.optimizer = train::Optimizer::states(train) * memory.weights;
  memory.average = train::Optimizer::has_average(train) ? memory.weights : 0;
  info.decoding.weights = stored_bytes(parameters, *parse_weights(info.precision));
}

TaskModel describe_language_model(ModelInfo& info, const TrainSpec& train) {
  const ModelSpec& s = info.spec;
  LanguageModel model(s, info.target_vocabulary, Context{}, 1, 0, LanguageModel::Weights::none);
  Inventory inventory = take_inventory(model.parameters(), info.target_vocabulary, s.dim_emb);
  for (Inventory::Part& part : inventory.parts)
    if (part.once == "target token") part.once = "token";
  count(info, model.parameters(), std::move(inventory), train);
  return {fmt::format("language model, {}, {}, output {}; {} tokens in the vocabulary",
                      layers_text(s.dec_depth), widths_text(s), name_of(s.language_model.output),
                      grouped(info.target_vocabulary)),
          {{"vocabulary", info.target_vocabulary}},
          s.dec_cell,
          "scoring"};
}

TaskModel describe_tagger(ModelInfo& info, const TrainSpec& train) {
  const ModelSpec& s = info.spec;
  const TaggingSpec& tagging = s.tagging;
  const Vocabulary none = word_vocabulary({"-"});  // no batch is read
  const WordForms forms(none);
  Tagger model(s, info.source_vocabulary, info.target_vocabulary, forms, Context{}, 1,
               Tagger::Weights::none);
  count(info, model.parameters(), model.inventory(), train);
  const std::string characters = tagging.dim_char_rnn == 0
                                     ? std::string("none")
                                     : fmt::format("widths {} (embeddings) and {} (units)",
                                                   tagging.dim_char_emb, tagging.dim_char_rnn);
  return {fmt::format("tagger, {} network{}, {}, {}, characters: {}; {} words and {} tags",
                      name_of(tagging.network), tagging.crf ? " with a CRF" : "",
                      layers_text(s.enc_depth), widths_text(s), characters,
                      grouped(info.source_vocabulary), grouped(info.target_vocabulary)),
          {{"network", name_of(tagging.network)},
           {"crf", tagging.crf},
           {"vocabulary", info.source_vocabulary},
           {"labels", info.target_vocabulary}},
          s.enc_cell,
          "tagging"};
}

TaskModel describe_classifier(ModelInfo& info, const TrainSpec& train) {
  const ModelSpec& s = info.spec;
  Classifier model(s, info.source_vocabulary, info.target_vocabulary, Context{}, 1,
                   Classifier::Weights::none);
  count(info, model.parameters(), model.inventory(), train);
  return {fmt::format("classifier, {}, {}, attentive pooling; {} symbols and {} labels",
                      layers_text(s.enc_depth), widths_text(s), grouped(info.source_vocabulary),
                      grouped(info.target_vocabulary)),
          {{"vocabulary", info.source_vocabulary}, {"labels", info.target_vocabulary}},
          s.enc_cell,
          "classification"};
}

TaskModel describe(ModelInfo& info, const TrainSpec& train) {
  switch (info.spec.task) {
    case Task::language_model: return describe_language_model(info, train);
    case Task::tagging: return describe_tagger(info, train);
    case Task::classification: return describe_classifier(info, train);
    case Task::translation: break;
  }
  NMT_FAIL("task {} has a report of its own", name_of(info.spec.task));
}

// What products are counted for, each once, in the order of the parts.
std::vector<std::string> occasions(const Inventory& inventory) {
  std::vector<std::string> all;
  for (const Inventory::Part& part : inventory.parts)
    if (!part.once.empty() && std::find(all.begin(), all.end(), part.once) == all.end())
      all.push_back(part.once);
  return all;
}

std::string text_of(const ModelInfo& info, const TaskModel& model) {
  const Inventory& inventory = info.inventory;
  std::string out = fmt::format("{}: {}{}\nunit {}", info.origin, model.text,
                                info.precision == "float32" ? "" : "; weights in " + info.precision,
                                unit_text(*unit_settings(info.spec, model.cell).unit));
  out += parts_text(inventory) + "\nmultiply-adds\n";
  for (const std::string& once : occasions(inventory))
    out += fmt::format("  per {:<12} {:>14}\n", once, grouped(inventory.products(once)));
  const TrainingMemory& training = info.training;
  out += fmt::format("\nmemory of training with {}, without activations\n", info.optimizer);
  const auto line = [&](const char* name, std::int64_t bytes) {
    out += fmt::format("  {:<12}{}\n", name, mebibytes(bytes));
  };
  line("weights", training.weights);
  line("gradients", training.gradients);
  line("optimizer", training.optimizer);
  line("average", training.average);
  line("total", training.total());
  out += fmt::format("memory of {}\n", model.use);
  line("weights", info.decoding.weights);
  return out;
}

std::string json_of(const ModelInfo& info, const TaskModel& model) {
  Json json, products;
  json["origin"] = info.origin;
  json["task"] = name_of(info.spec.task);
  json["precision"] = info.precision;
  json.update(model.sizes);
  json["unit"] = unit_json(*unit_settings(info.spec, model.cell).unit);
  json["parameters"] = parameters_json(info.inventory);
  for (const std::string& once : occasions(info.inventory))
    products[once] = info.inventory.products(once);
  json["products"] = products;
  json["memory"]["training"] = {
      {"optimizer-rule", info.optimizer},     {"weights", info.training.weights},
      {"gradients", info.training.gradients}, {"optimizer", info.training.optimizer},
      {"average", info.training.average},     {"total", info.training.total()}};
  json["memory"][model.use] = {{"weights", info.decoding.weights}};
  return dump_json(json, 2) + "\n";
}

}  // namespace

std::string task_model_info(const InfoSpec& spec, ModelInfo info) {
  info.optimizer = name_of(spec.training.train.optimizer);
  const TaskModel model = describe(info, spec.training.train);
  return spec.json ? json_of(info, model) : text_of(info, model);
}

}  // namespace nmt::app
