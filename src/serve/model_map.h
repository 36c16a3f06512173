#pragma once

#include "serve/languages.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace nmt::serve {

/// A model directory and what it translates.
struct ModelEntry {
  int id = 0;  ///< stays the same while the server runs
  Direction direction;
  std::string directory;
  bool operator==(const ModelEntry&) const = default;
};

/// The models at one time.
class ModelMap {
 public:
  explicit ModelMap(std::vector<ModelEntry> entries);

  const std::vector<ModelEntry>& entries() const { return entries_; }
  /// All languages, sorted.
  const std::vector<std::string>& languages() const { return languages_; }
  /// Languages that texts may be in, sorted.
  const std::vector<std::string>& sources() const { return sources_; }
  /// The ids of the models from one language to another: one, or two through a third language (the
  /// first one in alphabetical order); none where there is no way.
  std::vector<int> route(const std::string& source, const std::string& target) const;
  /// Languages that a source can be translated to, sorted; the source itself is one of them.
  const std::vector<std::string>& targets(const std::string& source) const;

 private:
  int find(const std::string& source, const std::string& target) const;
  std::vector<ModelEntry> entries_;
  std::vector<std::string> languages_, sources_;
  std::map<std::string, std::vector<std::string>> targets_;  // of each language
};

/// Finds models. Each word is "en-de=DIRECTORY" or a folder whose subfolders are model directories
/// with such names. `on_skipped` gets every other entry of the folders, and why it is none, in one
/// text. Errors (usage): a word that is neither, a model that is not there, two models of a
/// direction, none at all. For a server that is running, only none at all is an error: other words
/// and second models are skipped, and directories that are named stay, whatever is there.
std::vector<ModelEntry> find_models(const std::vector<std::string>& words,
                                    const std::function<void(const std::string&)>& on_skipped,
                                    bool is_running);

}  // namespace nmt::serve
