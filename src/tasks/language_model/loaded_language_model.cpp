#include "tasks/language_model/loaded_language_model.h"

#include "model/directory/from_settings.h"
#include "model/directory/loaded_model.h"
#include "model/directory/stored_weights.h"

namespace nmt {

LoadedLanguageModel::LoadedLanguageModel(const std::string& directory, const Context& context) {
  const ModelDirectory place = ModelDirectory::open(directory);
  place.require(Task::language_model);
  const StoredCheckpoint checkpoint = place.published();
  updates_ = checkpoint.updates();
  vocabulary_ = place.load_vocabularies().target;
  model_ = from_settings(directory, [&] {
    return std::make_unique<LanguageModel>(place.spec(), vocabulary_->size(), context, 0, 0,
                                           LanguageModel::Weights::none);
  });
  const safetensors::File file = checkpoint.open_model();
  check_weights(file, place.weights(), model_->parameters());
  model_->freeze([&](Parameter& p) { fetch_stored(file, place.weights(), context, p); });
}

}  // namespace nmt
