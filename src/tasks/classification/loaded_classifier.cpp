#include "tasks/classification/loaded_classifier.h"

#include "core/log.h"
#include "model/directory/from_settings.h"
#include "model/directory/loaded_model.h"
#include "model/directory/stored_weights.h"

namespace nmt {
namespace {

ModelDirectory open_classifier(const std::string& path) {
  ModelDirectory directory = ModelDirectory::open(path);
  directory.require(Task::classification);
  return directory;
}

}  // namespace

LoadedClassifier::LoadedClassifier(const std::string& directory, const Context& context)
    : directory_(open_classifier(directory)),
      vocabularies_(directory_.load_vocabularies()),
      names_(class_names(*vocabularies_.target)),
      classifier_(from_settings(directory, [&] {
        return Classifier(directory_.spec(), directory_.source_size(),
                          static_cast<int>(names_.size()), context, 0, Classifier::Weights::none);
      })) {
  const safetensors::File file = directory_.published().open_model();
  check_weights(file, directory_.weights(), classifier_.parameters());
  for (Parameter& parameter : classifier_.parameters().all())
    fetch_stored(file, directory_.weights(), context, parameter);
}

bool LoadedClassifier::has_text(std::string_view line) const {
  return !vocabularies_.source->encode(line).empty();
}

std::vector<std::string> LoadedClassifier::classify(const std::vector<LabeledText>& examples,
                                                    bool with_blank) {
  std::vector<Ids> texts;
  std::vector<std::size_t> places;  // of texts in examples
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const LabeledText& example = examples[i];
    std::size_t tokens = 0;
    Ids text = encode_text(*vocabularies_.source, example.text, example.second,
                           max_classified_tokens, &tokens);
    const std::size_t separators = example.second.empty() ? 0 : 1;
    if (tokens == separators && !with_blank) continue;  // white space alone
    texts.push_back(std::move(text));
    if (tokens > max_classified_tokens && cropped_++ == 0)
      log::warn(
          "line {} has {} tokens, only {} of them are classified; further cropped lines are not "
          "reported individually",
          example.line, tokens, max_classified_tokens);
    places.push_back(i);
  }
  std::vector<std::string> labels(examples.size());
  const std::vector<std::int32_t> found = classify_all(classifier_, texts);
  for (std::size_t i = 0; i < found.size(); ++i)
    labels[places[i]] = names_.at(static_cast<std::size_t>(found[i]));
  return labels;
}

}  // namespace nmt
