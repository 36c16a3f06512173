#include "app/convert/convert_check.h"

#include "app/compute/compute.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/log.h"
#include "core/nlohmann.h"
#include "core/number_text.h"
#include "eval/bleu.h"
#include "model/directory/loaded_model.h"
#include "model/directory/stored_weights.h"
#include "search/batch_translator.h"
#include "text/lines.h"

#include <algorithm>
#include <filesystem>
#include <memory>

namespace nmt::app {
namespace {

// By how much the check grows where BLEU falls by more than the tolerance.
constexpr std::size_t more_sentences = 10;

struct CheckText {
  std::string origin;
  std::vector<std::string> sources, references;
  std::vector<ContextSentences> contexts;  // of the sources; none if the model has no context
  bool has_more = false;                   // there are sentences besides these
};

// The model directory contains the translations of the last validation with sources and references.
CheckText development_set(const std::string& directory) {
  CheckText text;
  text.origin = directory + "/development.json";
  std::error_code error;
  if (!std::filesystem::is_regular_file(text.origin, error))
    fail(ExitStatus::usage,
         "check: {} has no development set; give --check SOURCE REFERENCE, or --no-check",
         directory);
  try {
    const auto json = nlohmann::json::parse(read_file(text.origin));
    text.sources = json.at("sources").get<std::vector<std::string>>();
    text.references = json.at("references").get<std::vector<std::string>>();
    if (json.contains("contexts"))
      text.contexts = json.at("contexts").get<std::vector<ContextSentences>>();
  } catch (const nlohmann::json::exception&) {
    fail(ExitStatus::data, "{}: is not a list of translations as nmt-train writes it", text.origin);
  }
  return text;
}

CheckText check_text(const ConvertSpec& spec, int context_sentences) {
  CheckText all;
  if (spec.check.empty()) {
    all = development_set(spec.model);
  } else if (spec.check.size() == 2) {
    all.origin = spec.check[0];
    all.sources = read_lines(spec.check[0]);
    all.references = read_lines(spec.check[1]);
  } else {
    fail(ExitStatus::usage, "check: {} given, expected two: source and reference",
         counted(std::ssize(spec.check), "file"));
  }
  if (all.sources.size() != all.references.size())
    fail(ExitStatus::data, "check: {} sources and {} references in {}; expected equal numbers",
         all.sources.size(), all.references.size(),
         spec.check.empty() ? all.origin : spec.check[0] + " and " + spec.check[1]);
  if (!spec.check.empty()) all.contexts = contexts_of(all.sources, context_sentences);
  if (all.contexts.size() != (context_sentences > 0 ? all.sources.size() : 0))
    fail(ExitStatus::data, "{}: has contexts of {} of {} sources", all.origin, all.contexts.size(),
         all.sources.size());
  return all;
}

// Up to `max_sentences` sentences with text on both sides, spread evenly over the text: its parts
// may differ in kind.
CheckText spread(const CheckText& all, std::size_t max_sentences) {
  CheckText text;
  text.origin = all.origin;
  std::vector<std::size_t> usable;
  for (std::size_t i = 0; i < all.sources.size(); ++i)
    if (!is_blank(all.sources[i]) && !is_blank(all.references[i])) usable.push_back(i);
  const std::size_t count = std::min(usable.size(), max_sentences);
  for (std::size_t n = 0; n < count; ++n) {
    const std::size_t i = usable[n * usable.size() / count];
    text.sources.push_back(all.sources[i]);
    text.references.push_back(all.references[i]);
    if (!all.contexts.empty()) text.contexts.push_back(all.contexts[i]);
  }
  text.has_more = count < usable.size();
  if (text.sources.empty())
    fail(ExitStatus::data, "check: {} has no pair with text on both sides", all.origin);
  return text;
}

double bleu_with(Dtype weights, const Shortlist* shortlist, const ConvertSpec& spec,
                 const CheckText& text) {
  ComputeSpec compute_spec = spec.compute;
  compute_spec.precision = parse_enum<Precision>(precision_name(weights), "precision");
  Compute compute(compute_spec);
  const std::unique_ptr<Arena> arena = compute.new_arena();
  const std::unique_ptr<LoadedModel> model = LoadedModel::load(spec.model, compute.context(*arena));
  BatchTranslatorOptions options = translator_options(spec.search, compute.cpu());
  options.search.shortlist = shortlist;
  options.warn_crops = false;  // of a sample of the lines, twice
  options.context_sentences = model->model().spec().context_sentences;
  BatchTranslator translator(model->scorer(), model->source_vocabulary(),
                             model->target_vocabulary(), options);
  std::vector<std::string> outputs;
  for (const LineTranslation& translation : translator.translate(text.sources, 1, text.contexts))
    outputs.push_back(translation.outputs.at(0).text);
  return corpus_bleu(outputs, text.references).score;
}

}  // namespace

nlohmann::ordered_json check_conversion(const ConvertSpec& spec, Dtype to,
                                        const Shortlist* shortlist) {
  const int context_sentences = ModelDirectory::open(spec.model).spec().context_sentences;
  const std::string what =
      fmt::format("{}{}", name_of(spec.precision), shortlist ? " with the shortlist" : "");
  const CheckText all = check_text(spec, context_sentences);
  CheckText text;
  double before = 0, after = 0;
  std::string found;
  const auto is_good = [&](std::size_t max_sentences) {
    text = spread(all, max_sentences);
    before = bleu_with(Dtype::f32, nullptr, spec, text);
    after = bleu_with(to, shortlist, spec, text);
    found = fmt::format("BLEU {:.2f} in float32, {:.2f} in {}, over {} sentences of {}", before,
                        after, what, text.sources.size(), text.origin);
    return before - after <= spec.tolerance;
  };
  const auto first = static_cast<std::size_t>(spec.check_sentences);
  bool good = is_good(first);
  if (!good && text.has_more) {
    log::info("{}; repeating the check with up to {} sentences", found, first * more_sentences);
    good = is_good(first * more_sentences);
  }
  if (!good)
    fail(ExitStatus::failed,
         "{}: {} loses too much BLEU: {}; the limit is a loss of {} (--tolerance); nothing was "
         "written",
         spec.model, what, found, spec.tolerance);
  log::info("{}", found);
  return {{"sentences", text.sources.size()}, {"bleu-float32", before}, {"bleu", after}};
}

}  // namespace nmt::app
