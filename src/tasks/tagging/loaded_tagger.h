#pragma once

#include "model/directory/model_directory.h"
#include "tasks/tagging/tagger.h"
#include "tasks/tagging/word_forms.h"

#include <string>
#include <vector>

namespace nmt {

/// A model directory ready to tag: spec, vocabulary, names of the tags, weights.
class LoadedTagger {
 public:
  /// Loads the published checkpoint (best, else latest). The context's pool and arena must outlive
  /// it. Errors: (usage) no model there, or one of another task; (data) damaged files.
  LoadedTagger(const std::string& directory, const Context& context);
  LoadedTagger(const LoadedTagger&) = delete;

  const ModelSpec& spec() const { return directory_.spec(); }
  const std::vector<std::string>& tags() const { return tags_; }
  WordForms& forms() { return forms_; }
  Tagger& tagger() { return tagger_; }

  /// The tags of sentences of valid UTF-8. Sentences of more than `max_words` words are tagged in
  /// parts.
  std::vector<Ids> tag(const std::vector<std::vector<std::string>>& sentences);
  static constexpr std::size_t max_words = 1000;

 private:
  ModelDirectory directory_;
  VocabularyPair vocabularies_;
  WordForms forms_;
  std::vector<std::string> tags_;
  Tagger tagger_;
};

}  // namespace nmt
