#include "config/settings.h"

#include "config/messages/nearest.h"

#include <algorithm>
#include <filesystem>

namespace nmt::config {

Settings::Settings(std::string program, std::string usage, std::string summary)
    : program_(std::move(program)), usage_(std::move(usage)), summary_(std::move(summary)) {
  add(in_group(
      "common",
      {
          Option("config", &config_files_,
                 "YAML files of settings; later files and the command line take precedence")
              .alias({"c"})
              .meta("FILE...")
              .with_role(Role::location)
              .never_dumped(),
          Option("dump-config", &dump_, "print all or the given settings as YAML for --config")
              .one_of({"", "full", "minimal"})
              .value_alone("full")
              .with_role(Role::location)
              .never_dumped(),
          Option("completion", &completion_, "print a completion script for the shell")
              .one_of({"", "bash", "zsh"})
              .with_role(Role::location)
              .never_dumped(),
          Option("log-level", &log_level_, "lowest level of log lines")
              .one_of({"debug", "info", "warn", "error", "off"})
              .with_role(Role::location),
          Option("quiet", &quiet_, "log warnings and errors only")
              .with_role(Role::location)
              .never_dumped(),
          Option("help", &help_, "print this text, or the options as Markdown")
              .alias({"h"})
              .one_of({"", "text", "markdown"})
              .value_alone("text")
              .with_role(Role::location)
              .never_dumped(),
          Option("version", &version_, "print the version")
              .with_role(Role::location)
              .never_dumped(),
          Option("build-info", &build_info_, "print compiler, CUDA, kernels and recurrent units")
              .with_role(Role::location)
              .never_dumped(),
      }));
}

Settings& Settings::add(std::vector<Option> options) {
  for (Option& option : options) {
    Entry* known = find(option.name);
    if (known) {
      NMT_CHECK(known->option.target.index() == option.target.index() &&
                    known->option.initial == option.initial,
                "option --{} is added twice with another type or default", option.name);
      for (const std::string& alias : option.aliases)
        if (!find(alias)) add_alias(*known, alias);
      known->option.help = option.help;
      known->twins.push_back(std::move(option));
      continue;
    }
    for (const std::string& alias : option.aliases)
      NMT_CHECK(!find(alias), "option name {} is added twice", alias);
    const std::size_t place = entries_.size();
    places_.emplace(option.name, place);
    for (const std::string& alias : option.aliases) places_.emplace(alias, place);
    entries_.emplace_back(std::move(option));
  }
  return *this;
}

Settings& Settings::allow(std::string_view name, std::vector<std::string> words) {
  Entry* entry = find(name);
  NMT_CHECK(entry, "there is no option --{}", name);
  entry->option.words = std::move(words);
  return *this;
}

Settings& Settings::alias(std::string_view name, const char* other) {
  Entry* entry = find(name);
  NMT_CHECK(entry && !find(other), "option name {} of --{} cannot be added", other, name);
  add_alias(*entry, other);
  return *this;
}

Settings& Settings::after_dashes(std::string name) {
  NMT_CHECK(find(name) && find(name)->option.is_list(), "{}: is no list option", name);
  after_dashes_ = std::move(name);
  return *this;
}

Settings& Settings::positionals(std::vector<std::string> names) {
  for (const std::string& name : names) NMT_CHECK(find(name), "there is no option --{}", name);
  positionals_ = std::move(names);
  return *this;
}

void Settings::add_alias(Entry& entry, const std::string& name) {
  entry.option.aliases.push_back(name);
  places_.emplace(name, static_cast<std::size_t>(&entry - entries_.data()));
}

Settings::Entry* Settings::find(std::string_view name) {
  const auto place = places_.find(name);
  return place == places_.end() ? nullptr : &entries_[place->second];
}
const Settings::Entry* Settings::find(std::string_view name) const {
  return const_cast<Settings*>(this)->find(name);
}

std::string Settings::nearest_name(std::string_view name) const {
  std::vector<std::string> known;
  for (const Entry& entry : entries_) {
    known.push_back(entry.option.name);
    for (const std::string& alias : entry.option.aliases)
      if (alias.size() > 2 && alias[0] != '-') known.push_back(alias);
  }
  return nearest(name, known);
}

int Settings::level(std::string_view name) const {
  const Entry* entry = find(name);
  NMT_CHECK(entry, "there is no option --{}", name);
  return entry->level;
}

bool Settings::is_by_shorthand(std::string_view name) const {
  const Entry* entry = find(name);
  NMT_CHECK(entry, "there is no option --{}", name);
  return entry->by_shorthand;
}

std::string Settings::without_effect(bool typed) const {
  std::string idle;
  for (const Entry& entry : entries_) {
    const Option& option = entry.option;
    if (entry.level == 0 || is_typed(option.name) != typed || !option.idle_rule ||
        values(option) == option.initial)
      continue;
    if (const std::string why = option.idle_rule(); !why.empty())
      idle += fmt::format("{}{} ({})", idle.empty() ? "" : ", ", typed ? option.name : entry.where,
                          why);
  }
  return idle;
}

std::string Settings::with_source(const std::string& message) const {
  const std::string name = message.substr(0, message.find_first_of(": "));
  const Entry* entry = find(name);
  if (!entry || entry->option.name != name || entry->level == 0 || entry->level > files_)
    return message;
  // A file may have the name of an option.
  const bool is_value = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& other) {
    const std::vector<std::string> given = values(other.option);
    return std::find(given.begin(), given.end(), name) != given.end();
  });
  return is_value ? message : entry->where + message.substr(name.size());
}

Settings& Settings::checks_effects_itself() {
  effects_later_ = true;
  return *this;
}

std::vector<std::string> Settings::groups() const {
  std::vector<std::string> groups;
  for (const Entry& entry : entries_)
    if (entry.option.group != "common" &&
        std::find(groups.begin(), groups.end(), entry.option.group) == groups.end())
      groups.push_back(entry.option.group);
  groups.push_back("common");
  return groups;
}

std::vector<const Option*> Settings::options() const {
  std::vector<const Option*> all;
  for (const Entry& entry : entries_) all.push_back(&entry.option);
  return all;
}

std::vector<std::string> Settings::names() const {
  std::vector<std::string> all;
  for (const Entry& entry : entries_) all.push_back(entry.option.name);
  return all;
}

void Settings::set(Entry& entry, const std::vector<std::string>& words, const std::string& where,
                   int at) {
  const bool append = entry.level == at;  // a list option given again in the same place
  assign(entry.option, words, where, append);
  for (const Option& twin : entry.twins) assign(twin, words, where, append);
  entry.given = words;
  entry.where = where;
  // "auto" sets nothing, also where it is the name of an unset enumeration.
  const bool is_default = values(entry.option) == initial_values(entry.option) &&
                          values(entry.option) == std::vector<std::string>{automatic};
  entry.level = is_default ? 0 : at;
  entry.said = at;
  entry.by_shorthand = false;
}

void Settings::read(const std::vector<std::string>& arguments) {
  std::vector<Word> words = parse(arguments);
  const int command_line = 1000000;  // above all files; corrected below
  for (const Word& word : words)
    if (word.entry->option.name == "config")
      set(*word.entry, word.values, word.where, command_line);
  for (const std::string& file : config_files_) read_yaml_file(file);
  for (const Word& word : words)
    if (word.entry->option.name != "config") set(*word.entry, word.values, word.where, files_ + 1);
  find("config")->level = config_files_.empty() ? 0 : files_ + 1;
  hand_on_shorthands();
  settle_exclusions();
  keep_configurations();
  if (quiet_ && (log_level_ == "debug" || log_level_ == "info")) {
    log_level_ = "warn";
    find("log-level")->level = files_ + 1;  // a dump has it
  }
}

// A configuration is no output.
void Settings::keep_configurations() const {
  const auto is_regular = [](const std::string& path) {
    std::error_code error;
    return std::filesystem::is_regular_file(path, error);
  };
  for (const Entry& entry : entries_) {
    if (!entry.option.writes) continue;
    for (const std::string& output : values(entry.option))
      for (const std::string& file : config_files_) {
        std::error_code error;
        if (is_regular(output) && is_regular(file) &&
            std::filesystem::equivalent(output, file, error))
          fail(ExitStatus::usage, "{}: {} is a configuration file; name another file",
               entry.option.name, output);
      }
  }
}

// A shorthand sets options that are not set in the same place or a later one. Setting the whole
// value both ways in one place is an error.
void Settings::hand_on_shorthands() {
  const auto reject = [](const Entry& one, const Entry& other) {
    fail(ExitStatus::usage, "{} and {} set the same option; give one of them", one.where,
         other.where);
  };
  for (Entry& entry : entries_) {
    const Option& option = entry.option;
    if (entry.level == 0 || option.sets.empty()) continue;
    for (const std::string& name : option.sets) {
      Entry* into = find(name);
      NMT_CHECK(into, "--{} sets --{}, which this program does not have", option.name, name);
      const bool is_whole = option.item >= 0 || !option.suffix.empty();
      if (into->said == entry.level && is_whole) reject(entry, *into);
      if (into->said >= entry.level) continue;
      if (option.item >= 0) {  // `said` stays: --src and --tgt may stand in different places
        auto* list = std::get<std::vector<std::string>*>(into->option.target);
        if (static_cast<int>(list->size()) <= option.item)
          list->resize(static_cast<std::size_t>(option.item) + 1);
        (*list)[static_cast<std::size_t>(option.item)] = entry.given[0];
        into->level = std::max(into->level, entry.level);
        continue;
      }
      const int at = entry.level;
      into->level = 0;
      set(*into, {entry.given[0] + option.suffix}, entry.where, at);
      into->by_shorthand = true;
    }
  }
}

// Of two options that exclude each other, the one given later (in the order of files and command
// line) switches the other off; where its own value is `off`, only if that has its default.
// check(spec) reports both in one place.
void Settings::settle_exclusions() {
  for (const Entry& later : entries_)
    for (const std::string& name : later.option.excludes) {
      Entry* const earlier = find(name);
      if (!earlier || earlier->level >= later.level) continue;
      const bool is_off = values(later.option) == std::vector<std::string>{later.option.off};
      if (earlier->level == 0 || !is_off)
        assign(earlier->option, {earlier->option.off}, earlier->option.name);
    }
}

}  // namespace nmt::config
