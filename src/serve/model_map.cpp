#include "serve/model_map.h"

#include <algorithm>

namespace nmt::serve {
namespace {

void add(std::vector<std::string>& sorted, const std::string& word) {
  const auto place = std::lower_bound(sorted.begin(), sorted.end(), word);
  if (place == sorted.end() || *place != word) sorted.insert(place, word);
}

}  // namespace

ModelMap::ModelMap(std::vector<ModelEntry> entries) : entries_(std::move(entries)) {
  for (const ModelEntry& entry : entries_) {
    add(languages_, entry.direction.source);
    add(languages_, entry.direction.target);
    add(sources_, entry.direction.source);
  }
}

int ModelMap::find(const std::string& source, const std::string& target) const {
  for (const ModelEntry& entry : entries_)
    if (entry.direction.source == source && entry.direction.target == target) return entry.id;
  return -1;
}

std::vector<int> ModelMap::route(const std::string& source, const std::string& target) const {
  if (const int direct = find(source, target); direct >= 0) return {direct};
  for (const std::string& pivot : languages_)
    if (const int first = find(source, pivot), second = find(pivot, target);
        first >= 0 && second >= 0)
      return {first, second};
  return {};
}

std::vector<std::string> ModelMap::targets(const std::string& source) const {
  std::vector<std::string> result;
  for (const std::string& language : languages_)
    if (language == source || !route(source, language).empty()) result.push_back(language);
  return result;
}

}  // namespace nmt::serve
