#include "app/classify/classify.h"

#include "app/files/line_input.h"
#include "app/files/outputs.h"
#include "core/error.h"
#include "core/log.h"
#include "search/line_writer.h"
#include "tasks/classification/error_rate.h"
#include "tasks/classification/loaded_classifier.h"
#include "tasks/unknown_labels.h"
#include "text/lines.h"

#include <algorithm>

namespace nmt::app {
namespace {

constexpr std::size_t window = 1000;  // lines classified at a time

// What the classifier reads, in messages.
const char* input_of(const LoadedClassifier& loaded) {
  if (!loaded.labels()) return "one text, or two with a tab between them";
  return *loaded.labels() == LabeledUnit::pair ? "pairs of texts, with a tab between them"
                                               : "single texts, without tabs";
}

// Another number of texts than the classifier was trained on would get labels without meaning.
void require_fields(const LoadedClassifier& loaded, std::int64_t fields, const std::string& file,
                    std::int64_t line) {
  const std::optional<LabeledUnit> labels = loaded.labels();
  const std::int64_t texts = labels == LabeledUnit::pair ? 2 : 1;
  if (labels ? fields == texts : fields <= 2) return;
  fail(ExitStatus::data, "{}: line {} has {} field{}; this classifier reads {}", file, line, fields,
       fields == 1 ? "" : "s", input_of(loaded));
}

void classify_lines(const ClassifySpec& spec, LoadedClassifier& loaded, LineWriter& writer) {
  LineInput input(spec.input, {});
  std::vector<LabeledText> examples;
  const auto write = [&] {
    for (const std::string& label : loaded.classify(examples)) writer.write(label + "\n");
    examples.clear();
    if (!input.is_file()) writer.flush();
  };
  std::int64_t number = 0;
  for (std::string line; input.next(line);) {
    ++number;
    LabeledText& example = examples.emplace_back();
    example.line = number;
    const std::size_t tab = line.find('\t');
    example.text = line.substr(0, tab);
    if (tab != std::string::npos) example.second = line.substr(tab + 1);
    if (loaded.has_text(line))  // a line of white space is no text
      require_fields(loaded, 1 + std::count(line.begin(), line.end(), '\t'),
                     or_standard_stream(spec.input) == "-" ? "standard input" : spec.input, number);
    if (examples.size() == window || !input.ready()) write();
  }
  write();
  input.warn();
}

void score_file(const ClassifySpec& spec, LoadedClassifier& loaded, LineWriter& writer) {
  const LabeledTexts file = read_labeled_text(spec.evaluate);
  const LabeledUnit there = file.has_pairs ? LabeledUnit::pair : LabeledUnit::text;
  if (loaded.labels().value_or(there) != there)
    fail(ExitStatus::data, "{}: has {}; this classifier reads {}", spec.evaluate,
         file.has_pairs ? "pairs of texts" : "single texts", input_of(loaded));
  std::vector<std::string> references;
  for (const LabeledText& example : file.examples) references.push_back(example.label);
  warn_of_unknown_labels(spec.evaluate, loaded.names(), references, "text");
  writer.write(error_rate(loaded.classify(file.examples, true), references).text() + "\n");
}

}  // namespace

std::vector<config::Option> fields(ClassifySpec& spec) {
  return fields(spec, {.model = "model directory of a classifier",
                       .input = "one text, or two separated by a tab, per line",
                       .output = "labels",
                       .evaluate = "file of labeled texts to score"});
}

void classify(const ClassifySpec& spec) {
  Labeling run(spec, "nmt-classify");
  LoadedClassifier loaded(spec.model, run.context());
  if (spec.evaluate.empty())
    classify_lines(spec, loaded, run.writer());
  else
    score_file(spec, loaded, run.writer());
  run.writer().commit();
  if (loaded.cropped() > 1)
    log::warn("{} lines were longer than {} tokens and cropped", loaded.cropped(),
              max_classified_tokens);
}

}  // namespace nmt::app
