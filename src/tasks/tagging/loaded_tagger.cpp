#include "tasks/tagging/loaded_tagger.h"

#include "model/directory/from_settings.h"
#include "model/directory/loaded_model.h"
#include "model/directory/stored_weights.h"
#include "tasks/tagging/tagged_corpus.h"

#include <algorithm>

namespace nmt {
namespace {

ModelDirectory open_tagger(const std::string& path) {
  ModelDirectory directory = ModelDirectory::open(path);
  directory.require(Task::tagging);
  return directory;
}

}  // namespace

LoadedTagger::LoadedTagger(const std::string& directory, const Context& context)
    : directory_(open_tagger(directory)),
      vocabularies_(directory_.load_vocabularies()),
      forms_(*vocabularies_.source),
      tags_(label_names(*vocabularies_.target)),
      tagger_(from_settings(directory, [&] {
        return Tagger(directory_.spec(), directory_.source_size(), static_cast<int>(tags_.size()),
                      forms_, context, 0, Tagger::Weights::none);
      })) {
  const safetensors::File file = directory_.published().open_model();
  check_weights(file, directory_.weights(), tagger_.parameters());
  for (Parameter& parameter : tagger_.parameters().all())
    fetch_stored(file, directory_.weights(), context, parameter);
}

std::vector<Ids> LoadedTagger::tag(const std::vector<std::vector<std::string>>& sentences) {
  forms_.clear();
  std::vector<Ids> parts;
  std::vector<std::size_t> of;  // the sentence of each part
  for (std::size_t i = 0; i < sentences.size(); ++i)
    for (std::size_t begin = 0; begin < sentences[i].size(); begin += max_words) {
      const std::size_t count = std::min(max_words, sentences[i].size() - begin);
      parts.push_back(forms_.add(std::span(sentences[i]).subspan(begin, count)));
      of.push_back(i);
    }
  std::vector<Ids> labels(sentences.size());
  const std::vector<Ids> tagged = tag_all(tagger_, parts);
  for (std::size_t p = 0; p < parts.size(); ++p)
    labels[of[p]].insert(labels[of[p]].end(), tagged[p].begin(), tagged[p].end());
  return labels;
}

}  // namespace nmt
