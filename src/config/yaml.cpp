#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>

#include "nmt/config/settings.h"
#include "nmt/core/file.h"

namespace nmt::config {
namespace {

constexpr std::int64_t largest_file = 1 << 20;

// Whether a scalar needs no quotes to be read back as the same text.
bool is_plain(const std::string& text) {
  if (text.empty() || text == "null" || text == "Null" || text == "NULL" || text[0] == '-') return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || std::string_view("_./+-").find(static_cast<char>(c)) != std::string_view::npos; });
}

bool is_text(const Option& option) {
  return std::holds_alternative<std::string*>(option.target) || std::holds_alternative<std::vector<std::string>*>(option.target);
}

std::string scalar(const Option& option, const std::string& value) {
  if (!is_text(option) || is_plain(value)) return value;
  YAML::Emitter emitter;
  emitter << YAML::DoubleQuoted << value;
  return emitter.c_str();
}

}  // namespace

void Settings::read_yaml_file(const std::string& path) {
  read_yaml(read_file(path, largest_file), path);
}

void Settings::read_yaml(const std::string& text, const std::string& name) {
  ++files_;
  std::vector<YAML::Node> documents;
  try {
    documents = YAML::LoadAll(text);
  } catch (const YAML::Exception& error) {
    fail(ExitStatus::usage, "{}:{}: not YAML: {}", name, error.mark.line + 1, error.msg);
  }
  if (documents.empty() || documents[0].IsNull()) return;
  if (documents.size() > 1) fail(ExitStatus::usage, "{}: {} YAML documents, expected one", name, documents.size());
  if (!documents[0].IsMap()) fail(ExitStatus::usage, "{}: not a list of settings 'name: value'", name);

  std::vector<std::string> unknown;
  std::set<const Entry*> seen;
  for (const auto& item : documents[0]) {
    const int line = item.first.Mark().line + 1;
    if (!item.first.IsScalar()) fail(ExitStatus::usage, "{}:{}: a setting's name is not a single word", name, line);
    std::string key = item.first.Scalar();
    std::replace(key.begin(), key.end(), '_', '-');
    Entry* entry = key.size() > 1 ? find(key) : nullptr;  // single letters are for the command line
    if (!entry || !(entry->option.dumped || !entry->option.sets.empty())) {
      const std::string near = nearest_name(key);
      unknown.push_back(fmt::format("'{}' (line {}{})", item.first.Scalar(), line, near.empty() || near == key ? "" : "; did you mean " + near + "?"));
      continue;
    }
    const std::string where = fmt::format("{}:{}: {}", name, line, key);
    if (!seen.insert(entry).second) fail(ExitStatus::usage, "{}: given twice in this file", where);
    std::vector<std::string> words;
    const YAML::Node& value = item.second;
    const auto take = [&](const YAML::Node& node) {
      if (node.IsNull()) fail(ExitStatus::usage, "{}: has no value, expected {}", where, expected(entry->option));
      if (!node.IsScalar()) fail(ExitStatus::usage, "{}: a {} is not {}", where, node.IsMap() ? "map" : "list", expected(entry->option));
      words.push_back(node.Scalar());
    };
    if (value.IsSequence() && entry->option.is_list())
      for (const auto& element : value) take(element);
    else
      take(value);
    set(*entry, words, where, files_);
  }
  if (unknown.size() == 1) fail(ExitStatus::usage, "{}: unknown setting {}", name, unknown[0]);
  if (!unknown.empty()) fail(ExitStatus::usage, "{}: unknown settings {}", name, fmt::join(unknown, ", "));
}

std::string Settings::yaml(bool full) const {
  std::string text = fmt::format("# {} {}\n", program_, full ? "settings" : "settings that were given");
  std::vector<std::string> groups;
  for (const Entry& entry : entries_)
    if (std::find(groups.begin(), groups.end(), entry.option.group) == groups.end()) groups.push_back(entry.option.group);
  for (const std::string& group : groups) {
    std::string lines;
    for (const Entry& entry : entries_) {
      const Option& option = entry.option;
      if (option.group != group || !option.dumped || !option.sets.empty() || (!full && entry.level == 0)) continue;
      std::vector<std::string> words = values(option);
      for (std::string& word : words) word = scalar(option, word);
      lines += option.is_list() && !is_auto(option) ? fmt::format("{}: [{}]\n", option.name, fmt::join(words, ", "))
                                                   : fmt::format("{}: {}\n", option.name, words[0]);
    }
    if (!lines.empty()) text += fmt::format("\n# {}\n{}", group, lines);
  }
  return text;
}

}  // namespace nmt::config
