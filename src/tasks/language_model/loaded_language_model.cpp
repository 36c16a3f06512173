#include "tasks/language_model/loaded_language_model.h"

#include "model/directory/from_settings.h"
#include "model/directory/loaded_model.h"
#include "model/directory/stored_weights.h"

namespace nmt {

LoadedLanguageModel::LoadedLanguageModel(const std::string& directory, const Context& context) {
  const ModelDirectory model_directory = ModelDirectory::open(directory);
  model_directory.require(Task::language_model);
  const StoredCheckpoint checkpoint = model_directory.published();
  updates_ = checkpoint.updates();
  vocabulary_ = model_directory.load_vocabularies().target;
  model_ = from_settings(directory, [&] {
    return std::make_unique<LanguageModel>(model_directory.spec(), vocabulary_->size(), context, 0,
                                           0, LanguageModel::Weights::none);
  });
  const safetensors::File file = checkpoint.open_model();
  check_weights(file, model_directory.weights(), model_->parameters());
  model_->freeze([&](Parameter& p) { fetch_stored(file, model_directory.weights(), context, p); });
}

}  // namespace nmt
