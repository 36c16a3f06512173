#include "tasks/classification/loaded_classifier.h"

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
      classifier_(directory_.spec(), directory_.source_size(), static_cast<int>(names_.size()),
                  context, 0, Classifier::Weights::none) {
  const safetensors::File file = directory_.published().open_model();
  check_weights(file, directory_.weights(), classifier_.parameters());
  for (Parameter& parameter : classifier_.parameters().all())
    fetch_stored(file, directory_.weights(), context, parameter);
}

std::vector<std::string> LoadedClassifier::classify(const std::vector<LabeledText>& examples) {
  std::vector<Ids> texts;
  for (const LabeledText& example : examples)
    texts.push_back(
        encode_text(*vocabularies_.source, example.text, example.second, max_classified_tokens));
  std::vector<std::string> labels;
  for (const std::int32_t label : classify_all(classifier_, texts))
    labels.push_back(names_.at(static_cast<std::size_t>(label)));
  return labels;
}

}  // namespace nmt
