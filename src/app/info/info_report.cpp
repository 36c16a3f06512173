#include "app/info/info_report.h"

#include "core/nlohmann.h"
#include "model/architecture.h"
#include "model/check.h"
#include "model/encoder.h"
#include "train/reporter.h"

#include <fmt/format.h>

namespace nmt::app {
namespace {

const kernels::Unit& unit_of(const ModelInfo& info, const std::string& cell) {
  return *unit_settings(info.spec, cell).unit;
}

std::string attention_text(const ModelInfo& info) {
  if (info.inventory.memory_width == 0) return "no attention";
  if (architecture_of(info.spec).has_blocks())
    return fmt::format("attention {}, {} head{} in every decoder layer",
                       name_of(info.spec.attention), info.spec.heads,
                       info.spec.heads == 1 ? "" : "s");
  return fmt::format(
      "attention {}, {} head{}{}, queried by {}", name_of(info.spec.attention), info.spec.heads,
      info.spec.heads == 1 ? "" : "s",
      info.spec.attention_projections ? " with value and output projections" : "",
      queries_recurrently(info.spec) ? "a conditional first layer" : "a plain first layer");
}

// Whether the encoder's layers have no unit.
bool has_self_attention(const ModelInfo& info) {
  return info.inventory.self_attention_products > 0;
}

std::string encoder_text(const ModelInfo& info) {
  if (has_self_attention(info))
    return fmt::format("encoder of self-attention, {} heads, positions {}\n",
                       info.spec.block.encoder_heads, name_of(info.spec.block.encoder_positions));
  return "unit of the encoder " + unit_text(unit_of(info, info.spec.enc_cell));
}

}  // namespace

std::string mebibytes(std::int64_t bytes) {
  return fmt::format("{:>12} MiB", grouped((bytes + (1 << 19)) >> 20));
}

std::string unit_text(const kernels::Unit& u) {
  if (u.matrix_state)
    return fmt::format(
        "{}: {} weight matri{} over the input for the channels; {} vectors and {} numbers for each "
        "head; a matrix as state\n",
        u.name, u.inputs, u.inputs == 1 ? "x" : "ces", u.matrix_state->planes,
        u.matrix_state->scalars);
  return fmt::format(
      "{}{}{}: {} weight matrices, {} over the input and {} over the state; {} state vector{}\n",
      u.name, *u.variant ? " " : "", u.variant, u.inputs + u.recurrents + u.late, u.inputs,
      u.recurrents + u.late, u.states, u.states == 1 ? "" : "s");
}

nlohmann::ordered_json unit_json(const kernels::Unit& u) {
  return {{"name", u.name},
          {"variant", u.variant},
          {"matrices", u.inputs + u.recurrents + u.late},
          {"input-matrices", u.inputs},
          {"state-matrices", u.recurrents + u.late},
          {"states", u.states},
          {"matrix-state", u.matrix_state != nullptr}};
}

std::string parts_text(const Inventory& inventory) {
  std::string out =
      fmt::format("\n{:<16} {:>14} {:>14}  {}\n", "part", "parameters", "weights", "multiply-adds");
  for (const Inventory::Part& part : inventory.parts)
    out += fmt::format(
        "{:<16} {:>14} {:>14}  {}\n", part.name, grouped(part.parameters), grouped(part.weights),
        part.once.empty() ? "" : fmt::format("{} per {}", grouped(part.products), part.once));
  return out +
         fmt::format(
             "{:<16} {:>14}\n{:<16} {:>14}\nweights: matrices only, without biases, gains and "
             "per-channel vectors\n",
             "total", grouped(inventory.parameters()), "excl. embeddings",
             grouped(inventory.parameters() - inventory.embeddings()));
}

nlohmann::ordered_json parameters_json(const Inventory& inventory) {
  nlohmann::ordered_json components;
  for (const Inventory::Part& part : inventory.parts)
    components[part.name] = {{"parameters", part.parameters}, {"weights", part.weights}};
  return {{"total", inventory.parameters()},
          {"embeddings", inventory.embeddings()},
          {"without-embeddings", inventory.parameters() - inventory.embeddings()},
          {"components", components}};
}

std::string text_of(const ModelInfo& info) {
  const ModelSpec& s = info.spec;
  const Inventory& inventory = info.inventory;
  std::string out = fmt::format(
      "{}: {}{}, {} + {} layers, widths {} (embeddings) and {} (units), {}; {} source and {} "
      "target symbols{}\n",
      info.origin, name_of(s.type), s.context_aware ? " context-aware" : "", s.enc_depth,
      s.dec_depth, s.dim_emb, s.dim_rnn, attention_text(info), grouped(info.source_vocabulary),
      grouped(info.target_vocabulary),
      info.precision == "float32" ? "" : "; weights in " + info.precision);
  if (s.context_sentences > 0)
    out += fmt::format("input: {} preceding source sentences of the document, then the sentence\n",
                       s.context_sentences);
  out += encoder_text(info) + "unit of the decoder " + unit_text(unit_of(info, s.dec_cell));
  out += parts_text(inventory) + "\nmultiply-adds\n";
  for (const char* once : {"source token", "target token", "sentence"})
    out += fmt::format("  per {:<12} {:>14}\n", once, grouped(inventory.products(once)));
  out += fmt::format("  attention        {:>14} in addition per target token and source token\n",
                     grouped(inventory.attention_products()));
  if (has_self_attention(info))
    out += fmt::format("  self-attention   {:>14} in addition per pair of source tokens\n",
                       grouped(inventory.self_attention_products));
  const auto batch = [](const BatchSize& b) {
    return fmt::format("{} sentences of {} source and {} target tokens", b.sentences,
                       b.source_tokens, b.target_tokens);
  };
  out += fmt::format("\nmemory of training with {}, batches of {}; activations are an estimate\n",
                     info.optimizer, batch(info.training_batch));
  out += fmt::format(
      "  weights     {}\n  gradients   {}\n  optimizer   {}\n  average     {}\n  activations {}\n  "
      "total       {}\n",
      mebibytes(info.training.weights), mebibytes(info.training.gradients),
      mebibytes(info.training.optimizer), mebibytes(info.training.average),
      mebibytes(info.training.activations), mebibytes(info.training.total()));
  out += fmt::format(
      "memory of translating with beam {}, batches of {} sentences of {} source tokens\n",
      info.beam, info.decoding_batch.sentences, info.decoding_batch.source_tokens);
  out += fmt::format("  weights     {}\n  source      {}\n  hypotheses  {}\n  total       {}\n",
                     mebibytes(info.decoding.weights), mebibytes(info.decoding.source),
                     mebibytes(info.decoding.hypotheses), mebibytes(info.decoding.total()));
  return out;
}

std::string json_of(const ModelInfo& info) {
  const Inventory& inventory = info.inventory;
  nlohmann::ordered_json json;
  const auto batch = [](const BatchSize& b) {
    return nlohmann::ordered_json{{"sentences", b.sentences},
                                  {"source-tokens", b.source_tokens},
                                  {"target-tokens", b.target_tokens}};
  };
  json["origin"] = info.origin;
  json["precision"] = info.precision;
  json["type"] = name_of(info.spec.type);
  json["context-sentences"] = info.spec.context_sentences;
  json["vocabulary"] = {{"source", info.source_vocabulary}, {"target", info.target_vocabulary}};
  json["units"] = {
      {"encoder", has_self_attention(info) ? nlohmann::ordered_json()
                                           : unit_json(unit_of(info, info.spec.enc_cell))},
      {"decoder", unit_json(unit_of(info, info.spec.dec_cell))}};
  json["parameters"] = parameters_json(inventory);
  json["products"] = {{"source-token", inventory.products("source token")},
                      {"target-token", inventory.products("target token")},
                      {"sentence", inventory.products("sentence")},
                      {"attention", inventory.attention_products()},
                      {"self-attention", inventory.self_attention_products}};
  json["memory"]["training"] = {
      {"optimizer-rule", info.optimizer},         {"batch", batch(info.training_batch)},
      {"weights", info.training.weights},         {"gradients", info.training.gradients},
      {"optimizer", info.training.optimizer},     {"average", info.training.average},
      {"activations", info.training.activations}, {"total", info.training.total()}};
  json["memory"]["decoding"] = {{"beam-size", info.beam},
                                {"batch", batch(info.decoding_batch)},
                                {"weights", info.decoding.weights},
                                {"source", info.decoding.source},
                                {"hypotheses", info.decoding.hypotheses},
                                {"total", info.decoding.total()}};
  return dump_json(json, 2) + "\n";
}

}  // namespace nmt::app
