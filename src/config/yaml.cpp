#include "config/settings.h"
#include "core/file.h"

#include <algorithm>
#include <set>
#include <sstream>

#include <fmt/ranges.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

namespace nmt::config {
namespace {

constexpr std::int64_t largest_file = 1 << 20;

// Whether a scalar needs no quotes to be read back as the same text.
bool is_plain(const std::string& text) {
  if (text.empty() || text == "null" || text == "Null" || text == "NULL" || text[0] == '-')
    return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) ||
           std::string_view("_./+-").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

// Watches a document go by: settings are a map of lists at most, and nothing deeper is built in
// memory.
class DepthGuard : public YAML::EventHandler {
 public:
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    enter(mark);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    enter(mark);
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapEnd() override { --depth_; }
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}

 private:
  void enter(const YAML::Mark& mark) {
    if (++depth_ > 8) throw YAML::ParserException(mark, "nested too deep");
  }
  int depth_ = 0;
};

/// The one document of a text. YAML::LoadAll would do, but never ends on some malformed texts.
YAML::Node load(const std::string& text, const std::string& name) {
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    DepthGuard guard;
    if (parser.HandleNextDocument(guard) && parser.HandleNextDocument(guard))
      fail(ExitStatus::usage, "{}: more than one YAML document", name);
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    fail(ExitStatus::usage, "{}:{}: not YAML: {}", name, error.mark.line + 1, shown(error.msg));
  }
}

std::string scalar(const Option& option, const std::string& value) {
  if (!option.is_text() || is_plain(value)) return value;
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
  const YAML::Node document = load(text, name);
  if (document.IsNull()) return;
  if (!document.IsMap()) fail(ExitStatus::usage, "{}: not a list of settings 'name: value'", name);

  std::vector<std::string> unknown;
  std::set<const Entry*> seen;
  for (const auto& item : document) {
    const int line = item.first.Mark().line + 1;
    if (!item.first.IsScalar())
      fail(ExitStatus::usage, "{}:{}: a setting's name is not a single word", name, line);
    std::string key = item.first.Scalar();
    std::replace(key.begin(), key.end(), '_', '-');
    Entry* entry = key.size() > 1 ? find(key) : nullptr;  // single letters are for the command line
    if (!entry || !(entry->option.dumped || !entry->option.sets.empty())) {
      const std::string near = nearest_name(key);
      unknown.push_back(
          fmt::format("'{}' (line {}{})", shown(item.first.Scalar()), line,
                      near.empty() || near == key ? "" : "; did you mean " + near + "?"));
      continue;
    }
    const std::string where = fmt::format("{}:{}: {}", name, line, key);
    if (!seen.insert(entry).second) fail(ExitStatus::usage, "{}: given twice in this file", where);
    std::vector<std::string> words;
    const YAML::Node& value = item.second;
    const auto take = [&](const YAML::Node& node) {
      if (node.IsNull())
        fail(ExitStatus::usage, "{}: has no value, expected {}", where, expected(entry->option));
      if (!node.IsScalar())
        fail(ExitStatus::usage, "{}: a {} is not {}", where, node.IsMap() ? "map" : "list",
             expected(entry->option));
      words.push_back(node.Scalar());
    };
    if (value.IsSequence() && entry->option.is_list())
      for (const auto& element : value) take(element);
    else
      take(value);
    set(*entry, words, where, files_);
  }
  if (unknown.size() == 1) fail(ExitStatus::usage, "{}: unknown setting {}", name, unknown[0]);
  if (!unknown.empty())
    fail(ExitStatus::usage, "{}: unknown settings {}", name, fmt::join(unknown, ", "));
}

std::string Settings::yaml(bool full) const {
  std::string text =
      fmt::format("# {} {}\n", program_, full ? "settings" : "settings that were given");
  std::vector<std::string> groups;
  for (const Entry& entry : entries_)
    if (std::find(groups.begin(), groups.end(), entry.option.group) == groups.end())
      groups.push_back(entry.option.group);
  for (const std::string& group : groups) {
    std::string lines;
    for (const Entry& entry : entries_) {
      const Option& option = entry.option;
      if (option.group != group || !option.dumped || !option.sets.empty() ||
          (!full && entry.level == 0))
        continue;
      std::vector<std::string> words = values(option);
      for (std::string& word : words) word = scalar(option, word);
      lines += option.is_list() && !is_auto(option)
                   ? fmt::format("{}: [{}]\n", option.name, fmt::join(words, ", "))
                   : fmt::format("{}: {}\n", option.name, words[0]);
    }
    if (!lines.empty()) text += fmt::format("\n# {}\n{}", group, lines);
  }
  return text;
}

}  // namespace nmt::config
