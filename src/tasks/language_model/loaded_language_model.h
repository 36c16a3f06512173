#pragma once

#include "model/directory/model_directory.h"
#include "tasks/language_model/language_model.h"

#include <cstdint>
#include <memory>
#include <string>

namespace nmt {

/// The directory of a language model, ready to score: vocabulary and frozen weights.
class LoadedLanguageModel {
 public:
  /// As LoadedModel::load(). Errors: (usage) no model there, or not a language model; (data)
  /// damaged files.
  LoadedLanguageModel(const std::string& directory, const Context& context);

  LanguageModel& model() { return *model_; }
  const Vocabulary& vocabulary() const { return *vocabulary_; }
  std::int64_t updates() const { return updates_; }

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::unique_ptr<LanguageModel> model_;
  std::int64_t updates_ = 0;
};

}  // namespace nmt
