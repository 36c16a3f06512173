#include "app/explain/explain.h"

#include "app/common_options.h"
#include "app/compute/compute.h"
#include "app/explain/explanation.h"
#include "app/files/line_input.h"
#include "app/files/outputs.h"
#include "app/files/stored_shortlist.h"
#include "app/models/loaded_ensemble.h"
#include "app/page.h"
#include "config/fields.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/log.h"
#include "core/nlohmann.h"
#include "model/directory/loaded_model.h"
#include "search/batch_translator.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

namespace nmt::app {
namespace {

std::vector<std::string> read_lines(const ExplainSpec& spec) {
  LineInput input(spec.input, spec.text);
  std::vector<std::string> lines;
  for (std::string line; input.next(line);) lines.push_back(line);
  input.warn();
  if (lines.empty()) fail(ExitStatus::data, "the input is empty; expected one sentence per line");
  const auto max_lines = static_cast<std::size_t>(spec.sentences);
  if (lines.size() > max_lines) {
    log::warn("showing only the first {} of {} lines (--sentences)", max_lines, lines.size());
    lines.resize(max_lines);
  }
  return lines;
}

}  // namespace

SearchSpec explained_search() {
  SearchSpec search;
  search.max_length = 100;
  return search;
}

std::vector<config::Option> fields(ExplainSpec& spec) {
  using config::Option;
  return joined(
      {config::in_group(
           "files",
           {model_option(&spec.model, "model directory"),
            Option("input", &spec.input, "input file, one sentence per line")
                .unset_means("standard input")
                .alias({"i"})
                .meta("FILE"),
            output_option(&spec.output, "the HTML page"),
            Option("text", &spec.text, "lines to translate instead of an input file")
                .meta("TEXT")
                .never_dumped(),
            Option("json", &spec.json, "JSON file for the numbers of the page")
                .meta("FILE")
                .written(),
            Option("gates", &spec.gates, "safetensors file for all gates of all channels")
                .meta("FILE")
                .written(),
            Option("sentences", &spec.sentences, "maximum number of sentences").range(1, 10000)}),
       config::only({"beam-size", "length-penalty", "max-length"},
                    config::fields(spec.search, explained_search())),
       config::only({"cpu-threads", "device"}, config::fields(spec.compute))});
}

namespace {

// The search of nmt-translate: in the precision of the model directory, which may not be the
// float32 of what is explained, and on the CPU with its shortlist.
class Translations {
 public:
  Translations(const ExplainSpec& spec, LoadedModel& explained, const Context& context) {
    ComputeSpec compute_spec = spec.compute;
    compute_spec.stored_precision = decoding_precision({}, {spec.model});
    LoadedModel* model = &explained;
    if (compute_spec.stored_precision != Precision::float32) {
      compute_.emplace(compute_spec);
      arena_ = compute_->new_arena();
      own_ = LoadedModel::load(spec.model, compute_->context(*arena_));
      model = own_.get();
    }
    BatchTranslatorOptions options = translator_options(spec.search, context.cpu);
    options.context_sentences = model->model().spec().context_sentences;
    const ModelDirectory directory = ModelDirectory::open(spec.model);
    if (context.backend->host_memory)
      shortlist_ =
          stored_shortlist(directory, model->source_vocabulary(), model->target_vocabulary());
    if (shortlist_) options.search.shortlist = &*shortlist_;
    translator_.emplace(model->scorer(), model->source_vocabulary(), model->target_vocabulary(),
                        options);
  }
  BatchTranslator& translator() { return *translator_; }

 private:
  std::optional<Compute> compute_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<LoadedModel> own_;
  std::optional<Shortlist> shortlist_;
  std::optional<BatchTranslator> translator_;
};

}  // namespace

void explain(const ExplainSpec& spec) {
  if (spec.model.empty()) fail(ExitStatus::usage, "no model directory given; name it with -m DIR");
  check_outputs(
      {{spec.text.empty() ? or_standard_stream(spec.input) : ""}, {spec.model}},
      {{"output", or_standard_stream(spec.output)}, {"json", spec.json}, {"gates", spec.gates}});
  if (is_standard_output(or_standard_stream(spec.output)) + is_standard_output(spec.json) +
          is_standard_output(spec.gates) >
      1)
    fail(ExitStatus::usage,
         "two of output (the page), json and gates are standard output; name files for the others");
  Compute compute(spec.compute);
  log::info("{}", compute.describe("nmt-explain"));
  const std::unique_ptr<Arena> arena = compute.new_arena();
  const Context context = compute.context(*arena);
  const std::unique_ptr<LoadedModel> model = LoadedModel::load(spec.model, context);
  const std::vector<std::string> lines = read_lines(spec);
  PageOutput output(spec.output, spec.json);
  // An invalid name is refused now. What is written in place, such as a pipe, is opened once.
  std::error_code error;
  if (!spec.gates.empty() && spec.gates != "-" &&
      (!std::filesystem::exists(spec.gates, error) ||
       std::filesystem::is_regular_file(spec.gates, error)))
    const AtomicFile gates(spec.gates);

  Translations translations(spec, *model, context);
  Explanation explanation(*model, translations.translator(), spec.model, !spec.gates.empty());
  DocumentContext document(model->model().spec().context_sentences);
  for (std::size_t i = 0; i < lines.size(); ++i)
    explanation.add(lines[i], document.next(lines[i]), static_cast<std::int64_t>(i) + 1);

  const nlohmann::ordered_json json = explanation.json();
  if (!spec.gates.empty()) explanation.save_gates(spec.gates);
  output.write(make_page("explain.html", json), json);
}

}  // namespace nmt::app
