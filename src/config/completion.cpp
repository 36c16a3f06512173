#include "config/settings.h"

#include <algorithm>

#include <fmt/ranges.h>

namespace nmt::config {
namespace {

enum class Completes { words, files, directories, nothing };

Completes completes(const Option& option) {
  if (option.is_flag()) return Completes::nothing;
  if (!option.words.empty() || option.form == Form::device) return Completes::words;
  if (option.metavar.starts_with("DIR")) return Completes::directories;
  for (const char* file : {"FILE", "SRC"})
    if (option.metavar.starts_with(file)) return Completes::files;
  return Completes::nothing;
}

std::string words_of(const Option& option) {
  if (option.form == Form::device) return "cpu cuda auto";
  std::vector<std::string> words;
  for (const std::string& word : option.words)
    if (!word.empty()) words.push_back(word);
  return fmt::format("{}", fmt::join(words, " "));
}

// "--beam-size", "-b", "--beam".
std::vector<std::string> spellings(const Option& option) {
  std::vector<std::string> names{fmt::format("--{}", option.name)};
  for (const std::string& alias : option.aliases)
    names.push_back(alias[0] == '-' ? alias
                                    : fmt::format("{}{}", alias.size() <= 2 ? "-" : "--", alias));
  return names;
}

std::string function_of(const std::string& program) {
  std::string name = fmt::format("_{}", program);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string bash(const std::string& program, const std::vector<const Option*>& options) {
  std::string names, cases;
  for (const Option* option : options) {
    const std::vector<std::string> spelled = spellings(*option);
    names += fmt::format("{}{}", names.empty() ? "" : " ", fmt::join(spelled, " "));
    std::string action;
    switch (completes(*option)) {
      case Completes::words:
        action = fmt::format("compgen -W '{}' -- \"$word\"", words_of(*option));
        break;
      case Completes::files: action = "compgen -f -- \"$word\""; break;
      case Completes::directories: action = "compgen -d -- \"$word\""; break;
      case Completes::nothing: continue;
    }
    cases += fmt::format("    {}) mapfile -t COMPREPLY < <({}); return ;;\n",
                         fmt::join(spelled, "|"), action);
  }
  const std::string function = function_of(program);
  return fmt::format(R"(# Completion of {0} for bash.
{1}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  COMPREPLY=()
  case $before in
{2}  esac
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W '{3}' -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}}
complete -o filenames -F {1} {0}
)",
                     program, function, cases, names);
}

// Text between single quotes, where zsh's own brackets and colons are escaped.
std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else if (c == '[' || c == ']' || c == ':' || c == '\\')
      out.append("\\").push_back(c);
    else
      out += c;
  }
  return out;
}

std::string zsh(const std::string& program, const std::vector<const Option*>& options) {
  std::string lines;
  for (const Option* option : options) {
    const std::string colon = option->alone.empty() ? ":" : "::";
    std::string value = option->is_flag() ? "" : fmt::format("{}value:", colon);
    switch (completes(*option)) {
      case Completes::words: value += fmt::format("({})", words_of(*option)); break;
      case Completes::files: value += "_files"; break;
      case Completes::directories: value += "_files -/"; break;
      case Completes::nothing: break;
    }
    for (const std::string& name : spellings(*option))
      lines += fmt::format("  '*{}[{}]{}' \\\n", name, quoted(option->help), value);
  }
  return fmt::format(
      "#compdef {0}\n# Completion of {0} for zsh.\n_arguments -S \\\n{1}  "
      "'*:file:_files'\n",
      program, lines);
}

}  // namespace

std::string Settings::completion(const std::string& shell) const {
  std::vector<const Option*> options;
  for (const Entry& entry : entries_) options.push_back(&entry.option);
  const std::string command = program_.substr(0, program_.find(' '));  // without "train"
  return shell == "zsh" ? zsh(command, options) : bash(command, options);
}

}  // namespace nmt::config
