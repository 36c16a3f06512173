// nmt-convert: a model directory with its weights in fewer bits, checked by translating.

#include "app/compute.h"
#include "app/program.h"
#include "config/fields.h"
#include "config/settings.h"
#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "eval/bleu.h"
#include "model/directory/loaded_model.h"
#include "model/directory/stored_weights.h"
#include "model/directory/write_model.h"
#include "search/batch_translator.h"
#include "text/lines.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace nmt::app {
namespace {

struct Request {
  std::string model, output;
  Precision precision = Precision::int8;
  std::vector<std::string> check;  // source and reference
  bool no_check = false;
  int sentences = 100;
  SearchSpec search;
  ComputeSpec compute;     // threads alone: the check runs on the CPU
  double tolerance = 0.5;  // BLEU
};

struct CheckText {
  std::string origin;
  std::vector<std::string> sources, references;
};

// The translations of the last validation stand in the directory with their sources and references.
CheckText development_set(const std::string& directory) {
  CheckText text{directory + "/development.json", {}, {}};
  std::error_code error;
  if (!std::filesystem::is_regular_file(text.origin, error))
    fail(ExitStatus::usage,
         "check: {} remembers no development set; give --check SOURCE REFERENCE, or --no-check",
         directory);
  try {
    const auto json = nlohmann::json::parse(read_file(text.origin));
    text.sources = json.at("sources").get<std::vector<std::string>>();
    text.references = json.at("references").get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception&) {
    fail(ExitStatus::data, "{}: is not what nmt-train writes there", text.origin);
  }
  return text;
}

std::vector<std::string> lines_of(const std::string& path) {
  LineReader reader = LineReader::open(path);
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);) lines.push_back(line);
  reader.notes().warn(path);
  return lines;
}

// The first sentences that have text on both sides.
CheckText check_text(const Request& request) {
  CheckText all, text;
  if (request.check.empty())
    all = development_set(request.model);
  else if (request.check.size() == 2)
    all = {request.check[0], lines_of(request.check[0]), lines_of(request.check[1])};
  else
    fail(ExitStatus::usage, "check: {} files given, a source and a reference are needed",
         request.check.size());
  if (all.sources.size() != all.references.size())
    fail(ExitStatus::data, "check: {} sources and {} references in {}: they must be pairs",
         all.sources.size(), all.references.size(),
         request.check.empty() ? all.origin : request.check[0] + " and " + request.check[1]);
  text.origin = all.origin;
  for (std::size_t i = 0;
       i < all.sources.size() && text.sources.size() < static_cast<std::size_t>(request.sentences);
       ++i) {
    if (is_blank(all.sources[i]) || is_blank(all.references[i])) continue;
    text.sources.push_back(all.sources[i]);
    text.references.push_back(all.references[i]);
  }
  if (text.sources.empty())
    fail(ExitStatus::data, "check: {} has no pair with text on both sides", all.origin);
  return text;
}

double bleu_with(Dtype weights, const Request& request, const CheckText& text) {
  ComputeSpec where = request.compute;
  where.precision = parse_enum<Precision>(precision_name(weights), "precision");
  Compute compute(where);
  const std::unique_ptr<Arena> arena = compute.new_arena();
  const std::unique_ptr<LoadedModel> model =
      LoadedModel::load(request.model, compute.context(*arena));
  BatchTranslator translator(model->scorer(), model->source_vocabulary(),
                             model->target_vocabulary(),
                             translator_options(request.search, compute.cpu()));
  std::vector<std::string> outputs;
  for (const LineTranslation& translation : translator.translate(text.sources))
    outputs.push_back(translation.outputs.at(0).text);
  return corpus_bleu(outputs, text.references).score;
}

// What the check found, for the new model's state.json.
nlohmann::ordered_json check(const Request& request, Dtype to) {
  const CheckText text = check_text(request);
  const double before = bleu_with(Dtype::f32, request, text), after = bleu_with(to, request, text);
  const std::string found =
      fmt::format("BLEU {:.2f} in float32, {:.2f} in {}, over {} sentences of {}", before, after,
                  name_of(request.precision), text.sources.size(), text.origin);
  if (before - after > request.tolerance)
    fail(ExitStatus::failed,
         "{}: {} harms this model: {}; it may fall by {} (--tolerance); nothing was written",
         request.model, name_of(request.precision), found, request.tolerance);
  log::info("{}", found);
  return {{"sentences", text.sources.size()}, {"bleu-float32", before}, {"bleu", after}};
}

void convert(const Request& request) {
  if (request.model.empty()) fail(ExitStatus::usage, "no model: say which with -m DIR");
  if (request.output.empty()) fail(ExitStatus::usage, "no output: name a new folder with -o DIR");
  if (request.no_check && !request.check.empty())
    fail(ExitStatus::usage, "check and no-check: give one of them");
  const Dtype to = *parse_weights(name_of(request.precision));
  const ModelDirectory directory = ModelDirectory::open(request.model);
  if (to != Dtype::f32 && directory.weights() != Dtype::f32)
    fail(ExitStatus::usage, "model: {} holds {} weights already; {} ones are made of float32",
         request.model, precision_name(directory.weights()), name_of(request.precision));
  expect_new(request.output);
  nlohmann::ordered_json info{{"converted-to", name_of(request.precision)}};
  // Widened weights are the same numbers: there is nothing to check.
  if (to != Dtype::f32 && !request.no_check) info["check"] = check(request, to);
  const StoredCheckpoint checkpoint = directory.published();
  const safetensors::File file = checkpoint.open_model();
  Model names(directory.spec(), directory.source_size(), directory.target_size(), Context{}, 1);
  check_weights(file, directory.weights(), names.parameters());
  ThreadPool pool(request.compute.cpu_threads);
  const ConvertedWeights weights =
      convert_weights(file, directory.weights(), names.parameters(), to, {&pool});
  write_model(request.output, directory, weights.tensors, to, checkpoint.updates(), info.dump());
  log::info(
      "{}: {:.1f} MB of weights in {}, where {} has {:.1f}; translate with: nmt-translate -m {} < "
      "INPUT > OUTPUT",
      request.output, static_cast<double>(stored_bytes(names.parameters(), to)) * 1e-6,
      name_of(request.precision), request.model,
      static_cast<double>(stored_bytes(names.parameters(), directory.weights())) * 1e-6,
      request.output);
}

}  // namespace
}  // namespace nmt::app

int main(int argc, char** argv) {
  using nmt::config::Option;
  nmt::app::Request request;
  nmt::config::Settings settings(
      "nmt-convert", "[OPTIONS] MODEL OUTPUT",
      "writes a model directory with the weights in fewer bits: smaller, and faster on the CPU. It "
      "translates some "
      "sentences with both and refuses where BLEU falls. What training resumes from stays behind");
  settings
      .add(nmt::config::in_group(
          "files", {Option("model", &request.model,
                           "the model directory; its best checkpoint is taken, else the latest")
                        .alias({"m"})
                        .meta("DIR"),
                    Option("output", &request.output,
                           "a new model directory, which appears whole or not at all")
                        .alias({"o"})
                        .meta("DIR")}))
      .add(nmt::config::in_group(
          "conversion",
          {Option("precision", &request.precision,
                  "int8: a quarter of the bytes; bfloat16: half of them; float32: widens such a "
                  "model again")
               .one_of({"int8", "bfloat16", "float32"}),
           Option("check", &request.check,
                  "source and reference to check by; the development set that the model remembers "
                  "when not given")
               .meta("FILE"),
           Option("no-check", &request.no_check, "write the model unchecked"),
           Option("check-sentences", &request.sentences, "check by the first so many")
               .range(1, 1000000),
           Option("tolerance", &request.tolerance, "refuse where BLEU falls by more")
               .range(0, 100)}))
      .add(nmt::config::in_group(
          "conversion", nmt::config::only({"beam-size"}, nmt::config::fields(request.search))))
      .add(nmt::config::only({"cpu-threads"}, nmt::config::fields(request.compute)))
      .positionals({"model", "output"});
  return nmt::app::run_tool(argc, argv, settings, [&] {
    if (nmt::app::dump_if_asked(settings)) return nmt::ExitStatus::ok;
    nmt::app::convert(request);
    return nmt::ExitStatus::ok;
  });
}
