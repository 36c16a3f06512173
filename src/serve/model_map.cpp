#include "serve/model_map.h"

#include <algorithm>
#include <set>

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
  std::map<std::string, std::vector<std::string>> direct;
  for (const ModelEntry& entry : entries_)
    direct[entry.direction.source].push_back(entry.direction.target);
  for (const std::string& language : languages_) {
    std::set<std::string> reached{language};
    for (const std::string& next : direct[language]) {
      reached.insert(next);
      reached.insert(direct[next].begin(), direct[next].end());
    }
    targets_[language].assign(reached.begin(), reached.end());
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

const std::vector<std::string>& ModelMap::targets(const std::string& source) const {
  static const std::vector<std::string> none;
  const auto found = targets_.find(source);
  return found == targets_.end() ? none : found->second;
}

}  // namespace nmt::serve
