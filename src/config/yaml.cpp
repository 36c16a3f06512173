#include "config/settings.h"
#include "core/files/file.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/ranges.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

namespace nmt::config {
namespace {

constexpr std::int64_t largest_file = 1 << 20;

// Limits the nesting depth before the document is built in memory; settings are at most a map of
// lists.
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

/// `line`: counted from 0.
bool is_indented_by_tab(const std::string& text, int line) {
  std::istringstream stream(text);
  std::string read;
  for (int i = 0; i <= line; ++i) std::getline(stream, read);
  const std::size_t indentation = std::min(read.find_first_not_of(" \t"), read.size());
  return read.find('\t') < indentation;
}

/// Loads a text with a single document. YAML::LoadAll is not used: it does not terminate on some
/// malformed texts.
YAML::Node load(const std::string& text, const std::string& name) {
  // With the mark of the end of a document, an open quotation is an error; without, yaml-cpp closes
  // it at the end of the text. A NUL is of UTF-16 or UTF-32, which yaml-cpp reads too.
  const bool is_wide = text.find('\0') != std::string::npos;
  const std::string ended = is_wide ? text : text + (text.ends_with('\n') ? "...\n" : "\n...\n");
  try {
    std::istringstream stream(ended);
    YAML::Parser parser(stream);
    DepthGuard guard;
    if (parser.HandleNextDocument(guard) && parser.HandleNextDocument(guard))
      fail(ExitStatus::usage, "{}: more than one YAML document", name);
    return YAML::Load(ended);
  } catch (const YAML::Exception& error) {
    const auto lines = static_cast<int>(std::count(text.begin(), text.end(), '\n')) +
                       (text.ends_with('\n') ? 0 : 1);
    if (!is_wide && error.mark.line >= lines)
      fail(ExitStatus::usage, "{}:{}: not YAML: a quotation or bracket is not closed", name,
           std::max(lines, 1));
    if (is_indented_by_tab(text, error.mark.line))
      fail(ExitStatus::usage, "{}:{}: not YAML: indented by a tab; indent by spaces", name,
           error.mark.line + 1);
    fail(ExitStatus::usage, "{}:{}: not YAML: {}", name, error.mark.line + 1, shown(error.msg));
  }
}

}  // namespace

void Settings::read_yaml_file(const std::string& path) {
  read_yaml(read_file(path, largest_file), path);
}

void Settings::read_yaml(const std::string& text, const std::string& name) {
  ++files_;
  const YAML::Node document = load(text, name);
  if (document.IsNull()) return;
  if (!document.IsMap()) {
    const bool is_yaml = name.ends_with(".yml") || name.ends_with(".yaml");
    fail(ExitStatus::usage, "{}: not a list of settings 'name: value'{}", name,
         is_yaml ? "" : " (an option that takes several names takes all up to the next option)");
  }

  std::vector<std::string> unknown;
  std::set<const Entry*> seen;
  for (const auto& item : document) {
    const int line = item.first.Mark().line + 1;
    if (!item.first.IsScalar())
      fail(ExitStatus::usage, "{}:{}: a setting's name is not a single word", name, line);
    std::string key = item.first.Scalar();
    std::replace(key.begin(), key.end(), '_', '-');
    // Letters are for the command line.
    Entry* entry = key.size() > 1 && key[0] != '-' ? find(key) : nullptr;
    if (!entry || !(entry->option.dumped || !entry->option.sets.empty())) {
      const std::string near = nearest_name(key);
      const std::string hint = near.empty() || near == key ? "" : "did you mean " + near + "?",
                        place = name.empty() ? "" : fmt::format("line {}", line),
                        both = place + (place.empty() || hint.empty() ? "" : "; ") + hint;
      unknown.push_back(
          fmt::format("'{}'{}", shown(item.first.Scalar()), both.empty() ? "" : " (" + both + ")"));
      continue;
    }
    const std::string where = name.empty() ? key : fmt::format("{}:{}: {}", name, line, key);
    if (!seen.insert(entry).second)
      fail(ExitStatus::usage, "{}: given twice{}", where, name.empty() ? "" : " in this file");
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
  if (!unknown.empty())
    fail(ExitStatus::usage, "{}{}unknown setting{} {}", name, name.empty() ? "" : ": ",
         unknown.size() == 1 ? "" : "s", fmt::join(unknown, ", "));
}

std::string Settings::yaml(bool full) const {
  return dump(full ? Extent::full : Extent::given);
}

Settings& Settings::leave_out(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (Entry* const entry = find(name)) entry->option.dumped = false;
  return *this;
}

std::string Settings::stored_yaml() const {
  return dump(Extent::stored);
}

std::string Settings::yaml_of_all_ranks() const {
  return dump(Extent::all_ranks);
}

std::string Settings::dump(Extent extent) const {
  const bool only_given = extent == Extent::given;
  YAML::Emitter out;
  out << YAML::Comment(fmt::format("{} {}", program_, only_given ? "settings given" : "settings"));
  out << YAML::BeginMap;
  for (const std::string& group : groups()) {
    bool is_empty = true;
    for (const Entry& entry : entries_) {
      const Option& option = entry.option;
      if (option.group != group || !option.dumped || !option.sets.empty() ||
          (extent == Extent::all_ranks && option.per_rank))
        continue;
      // A run with a file that has a value without effect would warn of it.
      const bool is_for_a_run = only_given || extent == Extent::full,
                 is_idle = is_for_a_run && option.idle_rule && !option.idle_rule().empty(),
                 is_set = entry.level > 0 && !is_idle;
      if (only_given && !is_set) continue;
      const std::vector<std::string> words = is_idle ? initial_values(option) : values(option);
      if (std::exchange(is_empty, false))
        out << YAML::Newline << YAML::Newline << YAML::Comment(group);
      if (extent == Extent::full && !is_set && !option.chosen_otherwise.empty() &&
          words == initial_values(option)) {
        out << YAML::Newline
            << YAML::Comment(fmt::format("{}: {}", option.name, option.chosen_otherwise));
        continue;
      }
      out << YAML::Key << option.name << YAML::Value;
      if (option.is_list() && !(option.chosen && words == initial_values(option)))
        out << YAML::Flow << words;
      else
        out << words[0];
    }
  }
  out << YAML::EndMap;
  NMT_CHECK(out.good(), "settings cannot be written as YAML: {}", out.GetLastError());
  return fmt::format("{}\n", out.c_str());
}

}  // namespace nmt::config
