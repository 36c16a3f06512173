#include "app/convert/convert.h"

#include "app/common_options.h"
#include "app/convert/convert_check.h"
#include "app/files/line_input.h"
#include "app/files/outputs.h"
#include "app/files/stored_shortlist.h"
#include "config/fields.h"
#include "core/error.h"
#include "core/log.h"
#include "core/nlohmann.h"
#include "core/shell_word.h"
#include "core/threads/thread_pool.h"
#include "model/directory/from_settings.h"
#include "model/directory/loaded_model.h"
#include "model/directory/stored_weights.h"
#include "model/directory/write_model.h"
#include "model/model.h"
#include "search/beam/shortlist.h"
#include "tasks/language_model/language_model.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nmt::app {
namespace {

// Widening does not change the weights.
bool needs_no_check(const ConvertSpec& spec) {
  return spec.precision == Precision::float32 && !ShortlistOptions::parse(spec.search.shortlist);
}

// The names and shapes of the model's parameters.
std::unique_ptr<Trainable> without_weights(const ModelDirectory& directory) {
  return from_settings(directory.path(), [&]() -> std::unique_ptr<Trainable> {
    if (directory.spec().task == Task::language_model)
      return std::make_unique<LanguageModel>(directory.spec(), directory.target_size(), Context{},
                                             1, 0, LanguageModel::Weights::none);
    return std::make_unique<Model>(directory.spec(), directory.source_size(),
                                   directory.target_size(), Context{}, 1);
  });
}

struct NewShortlist {
  std::optional<Shortlist> list;
  std::string bytes;
};

// What --shortlist asks for, or else that of the model.
NewShortlist new_shortlist(const ConvertSpec& spec, const ModelDirectory& directory) {
  const std::optional<ShortlistOptions> options = ShortlistOptions::parse(spec.search.shortlist);
  if (!options) {
    if (!spec.search.shortlist.empty() || directory.shortlist().empty()) return {};
    const VocabularyPair vocabularies = directory.load_vocabularies();
    return {stored_shortlist(directory, *vocabularies.source, *vocabularies.target),
            directory.shortlist()};
  }
  directory.require(Task::translation);
  const VocabularyPair vocabularies = directory.load_vocabularies();
  const Vocabulary &source = *vocabularies.source, &target = *vocabularies.target;
  NewShortlist stored;
  stored.list = Shortlist::load(*options, source, target);
  stored.bytes = stored.list->bytes(source, target);
  log::info("shortlist {}: {} translations of source pieces", options->path, stored.list->size());
  return stored;
}

}  // namespace

std::vector<config::Option> fields(ConvertSpec& spec) {
  using config::Option;
  std::vector<Option> search =
      config::only({"beam-size", "shortlist"}, config::fields(spec.search));
  Option& shortlist = config::named(search, "shortlist");
  shortlist.help = "shortlist to store in the new directory, where it is used by default";
  shortlist.unset = "that of the model, if it has one";
  shortlist.metavar = "FILE [FIRST [BEST [PRUNE]]]|off";
  const config::IdleRule exact = [&spec] {
    return needs_no_check(spec) ? "weights in float32 without a new shortlist are not checked" : "";
  };
  const config::IdleRule unchecked = [&spec, exact] {
    return spec.no_check ? "no-check is on" : exact();
  };
  config::named(search, "beam-size").idle_rule = [&spec, unchecked] {
    const std::string why = unchecked();
    return why.empty() && ModelDirectory::task_at(spec.model) == Task::language_model
               ? "language models are checked by their perplexity"
               : why;
  };
  return joined(
      {config::in_group(
           "files",
           {model_option(&spec.model,
                         "translation or language model; its best checkpoint, or else the latest"),
            model_output_option(&spec.output)}),
       config::in_group(
           "conversion",
           {Option("precision", &spec.precision, "stored precision of the weights")
                .one_of({"int8", "bfloat16", "float32"}),
            Option("check", &spec.check,
                   "text for the check: source and reference; one for a language model")
                .idle_when(exact)
                .unset_means("the stored development set of a translation model")
                .meta("FILE"),
            Option("no-check", &spec.no_check, "write the model unchecked"),
            Option("check-sentences", &spec.check_sentences,
                   "sentences in the check; translation models: ten times as many before refusing")
                .range(1, 1000000)
                .idle_when(unchecked),
            Option("tolerance", &spec.tolerance,
                   "maximum loss in the check: BLEU, or percent of perplexity")
                .range(0, 100)
                .idle_when(unchecked)}),
       config::in_group("conversion", search),
       config::only({"cpu-threads"}, config::fields(spec.compute))});
}

void convert(const ConvertSpec& spec) {
  if (spec.model.empty()) fail(ExitStatus::usage, "no model directory given; name it with -m DIR");
  if (spec.output.empty())
    fail(ExitStatus::usage, "no output given; name a new directory with -o DIR");
  if (spec.no_check && !spec.check.empty())
    fail(ExitStatus::usage, "check and no-check exclude each other");
  std::vector<std::string> read = spec.check;
  if (const auto options = ShortlistOptions::parse(spec.search.shortlist))
    read.push_back(options->path);
  expect_one_standard_input(read);
  const Dtype to = *parse_weights(name_of(spec.precision));
  const ModelDirectory directory = ModelDirectory::open(spec.model);
  directory.require({Task::translation, Task::language_model});
  const bool is_text = directory.spec().task == Task::language_model;
  if (to != Dtype::f32 && directory.weights() != Dtype::f32)
    fail(ExitStatus::usage, "model: {} has {} weights; {} weights are made from float32",
         spec.model, precision_name(directory.weights()), name_of(spec.precision));
  check_outputs({{}, {spec.model}}, {{"output", spec.output}});
  expect_new(spec.output);
  const NewShortlist shortlist = new_shortlist(spec, directory);
  const StoredCheckpoint checkpoint = directory.published();
  nlohmann::ordered_json info{{"converted-to", name_of(spec.precision)}};
  if (!spec.no_check && !needs_no_check(spec))
    info["check"] = is_text
                        ? check_language_model(spec, to)
                        : check_conversion(spec, to, shortlist.list ? &*shortlist.list : nullptr);
  if (directory.published().folder() != checkpoint.folder())
    fail(ExitStatus::failed, "{}: a training changed the model during the check; convert it again",
         spec.model);
  const safetensors::File file = checkpoint.open_model();
  const std::unique_ptr<Trainable> model = without_weights(directory);
  ParameterSet& parameters = model->parameters();
  check_weights(file, directory.weights(), parameters);
  ThreadPool pool(spec.compute.cpu_threads);
  const ConvertedWeights weights =
      convert_weights(file, directory.weights(), parameters, to, {&pool});
  write_model(spec.output, directory, weights.tensors, to, checkpoint.updates(), info.dump(),
              shortlist.bytes);
  log::info("{}: {:.1f} MB of weights in {} ({} has {:.1f} MB); {}", spec.output,
            static_cast<double>(stored_bytes(parameters, to)) * 1e-6, name_of(spec.precision),
            spec.model, static_cast<double>(stored_bytes(parameters, directory.weights())) * 1e-6,
            is_text ? fmt::format("score with: nmt-score -m {} TEXT", shell_word(spec.output))
                    : fmt::format("translate with: nmt-translate -m {} < INPUT > OUTPUT",
                                  shell_word(spec.output)));
}

}  // namespace nmt::app
