#include "app/info/language_model_info.h"

#include "core/nlohmann.h"
#include "model/directory/stored_weights.h"
#include "model/encoder.h"
#include "tasks/language_model/language_model.h"
#include "train/optimization/optimizer.h"
#include "train/reporter.h"

#include <algorithm>

#include <fmt/format.h>

namespace nmt::app {
namespace {

std::string text_of_language_model(const ModelInfo& info) {
  const ModelSpec& s = info.spec;
  std::string out = fmt::format(
      "{}: language model, {} layer{}, widths {} (embeddings) and {} (units), output {}; {} "
      "tokens in the vocabulary{}\n",
      info.origin, s.dec_depth, s.dec_depth == 1 ? "" : "s", s.dim_emb, s.dim_rnn,
      name_of(s.language_model.output), grouped(info.target_vocabulary),
      info.precision == "float32" ? "" : "; weights in " + info.precision);
  out += "unit " + unit_text(*unit_settings(s, s.dec_cell).unit);
  out += fmt::format("\n{:<16} {:>14} {:>14} {:>14}\n", "part", "parameters", "weights",
                     "multiply-adds");
  for (const Inventory::Part& part : info.inventory.parts)
    out += fmt::format("{:<16} {:>14} {:>14} {:>14}\n", part.name, grouped(part.parameters),
                       grouped(part.weights), grouped(part.products));
  out += fmt::format("{:<16} {:>14} {:>14} {:>14}\n{:<16} {:>14}\n", "total",
                     grouped(info.inventory.parameters()), "",
                     grouped(info.inventory.products("target token")), "excl. embeddings",
                     grouped(info.inventory.parameters() - info.inventory.embeddings()));
  out +=
      "weights: matrices only, without biases, gains and per-channel vectors\n"
      "multiply-adds: per token\n";
  out += fmt::format(
      "\nmemory of training with {}, without activations\n  weights     {}\n  gradients   {}\n  "
      "optimizer   {}\n  average     {}\n  total       {}\nmemory of scoring\n  weights     {}\n",
      info.optimizer, mebibytes(info.training.weights), mebibytes(info.training.gradients),
      mebibytes(info.training.optimizer), mebibytes(info.training.average),
      mebibytes(info.training.total()), mebibytes(info.decoding.weights));
  return out;
}

std::string json_of_language_model(const ModelInfo& info) {
  const Inventory& inventory = info.inventory;
  nlohmann::ordered_json components, json;
  for (const Inventory::Part& part : inventory.parts)
    components[part.name] = {{"parameters", part.parameters}, {"weights", part.weights}};
  json["origin"] = info.origin;
  json["task"] = name_of(info.spec.task);
  json["precision"] = info.precision;
  json["vocabulary"] = info.target_vocabulary;
  json["unit"] = unit_json(*unit_settings(info.spec, info.spec.dec_cell).unit);
  json["parameters"] = {{"total", inventory.parameters()},
                        {"embeddings", inventory.embeddings()},
                        {"without-embeddings", inventory.parameters() - inventory.embeddings()},
                        {"components", components}};
  json["products"] = {{"token", inventory.products("target token")}};
  json["memory"]["training"] = {
      {"optimizer-rule", info.optimizer},     {"weights", info.training.weights},
      {"gradients", info.training.gradients}, {"optimizer", info.training.optimizer},
      {"average", info.training.average},     {"total", info.training.total()}};
  json["memory"]["scoring"] = {{"weights", info.decoding.weights}};
  return json.dump(2) + "\n";
}

}  // namespace

std::string language_model_info(const InfoSpec& spec, ModelInfo info) {
  LanguageModel model(info.spec, info.target_vocabulary, Context{}, 1, 0,
                      LanguageModel::Weights::none);
  info.inventory = take_inventory(model.parameters(), info.target_vocabulary, info.spec.dim_emb);
  std::erase_if(info.inventory.parts, [](const Inventory::Part& part) {
    return part.parameters == 0 && part.products == 0;
  });
  const TrainSpec& train = spec.training.train;
  info.optimizer = name_of(train.optimizer);
  TrainingMemory& memory = info.training;
  memory.weights = memory.gradients = stored_bytes(model.parameters(), Dtype::f32);
  memory.optimizer = train::Optimizer::states(train) * memory.weights;
  memory.average = train::Optimizer::has_average(train) ? memory.weights : 0;
  info.decoding.weights = stored_bytes(model.parameters(), *parse_weights(info.precision));
  return spec.json ? json_of_language_model(info) : text_of_language_model(info);
}

}  // namespace nmt::app
