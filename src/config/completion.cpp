#include "config/settings.h"
#include "core/error.h"

#include <algorithm>

#include <fmt/ranges.h>

namespace nmt::config {
namespace {

// Options of a program with several jobs, given instead of a job.
constexpr const char* job_options = "--help --version --completion=bash --completion=zsh";

enum class Completes { words, files, directories, nothing };

Completes completes(const Option& option) {
  if (option.is_flag()) return Completes::nothing;
  if (!option.words.empty() || option.form == Form::device) return Completes::words;
  if (option.metavar.starts_with("DIR")) return Completes::directories;
  if (option.metavar.ends_with(".spm")) return Completes::files;
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
  for (char& c : name)
    if (c == '-' || c == ' ') c = '_';
  return name;
}

std::string bash_function(const std::string& name, const std::vector<const Option*>& options) {
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
  return fmt::format(R"({0}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  COMPREPLY=()
  case $before in
{1}  esac
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W '{2}' -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}}
)",
                     name, cases, names);
}

// Completes the first argument, the job; for later arguments, calls the function of that job.
std::string bash_jobs(const std::string& name, const std::vector<std::string>& jobs) {
  std::string cases;
  for (const std::string& job : jobs) cases += fmt::format("    {0}) {1}_{0} ;;\n", job, name);
  return fmt::format(R"({0}() {{
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W '{1} {2}' -- "${{COMP_WORDS[1]}}")
    return
  fi
  case ${{COMP_WORDS[1]}} in
{3}  esac
}}
)",
                     name, fmt::join(jobs, " "), job_options, cases);
}

// Escapes text for single quotes in a zsh specification, including brackets and colons.
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

std::string zsh_arguments(const std::vector<const Option*>& options) {
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
  return fmt::format("_arguments -S \\\n{}  '*:file:_files'\n", lines);
}

std::string zsh_jobs(const std::string& name, const std::vector<std::string>& jobs) {
  std::string cases;
  for (const std::string& job : jobs)
    cases += fmt::format("    {0}) shift words; ((CURRENT--)); {1}_{0} ;;\n", job, name);
  return fmt::format(R"({0}() {{
  if ((CURRENT == 2)); then
    compadd -- {1} {2}
    return
  fi
  case $words[2] in
{3}  esac
}}
{0} "$@"
)",
                     name, fmt::join(jobs, " "), job_options, cases);
}

constexpr const char* completion_option = "--completion";

std::vector<std::string>::const_iterator find_completion(
    const std::vector<std::string>& arguments) {
  return std::find_if(arguments.begin(), arguments.end(), [](const std::string& word) {
    return word.substr(0, word.find('=')) == completion_option;
  });
}

}  // namespace

std::string Settings::completion(const std::string& shell) const {
  return config::completion(shell, {this});
}

std::string completion(const std::string& shell, const std::vector<const Settings*>& jobs) {
  const bool is_zsh = shell == "zsh";
  const std::string first = jobs[0]->program(), program = first.substr(0, first.find(' ')),
                    function = function_of(program);
  std::string functions;
  std::vector<std::string> names;
  for (const Settings* settings : jobs) {
    const std::vector<const Option*> options = settings->options();
    const std::string name = function_of(settings->program());
    if (settings->program() != program)
      names.push_back(settings->program().substr(program.size() + 1));
    if (!is_zsh)
      functions += bash_function(name, options);
    else if (settings->program() == program)
      functions += zsh_arguments(options);
    else
      functions += fmt::format("{}() {{\n{}}}\n", name, zsh_arguments(options));
  }
  if (!names.empty()) functions += is_zsh ? zsh_jobs(function, names) : bash_jobs(function, names);
  if (is_zsh)
    return fmt::format("#compdef {0}\n# Completion of {0} for zsh.\n{1}", program, functions);
  return fmt::format("# Completion of {0} for bash.\n{1}complete -o filenames -F {2} {0}\n",
                     program, functions, function);
}

bool asks_completion(const std::vector<std::string>& arguments) {
  return find_completion(arguments) != arguments.end();
}

std::string completion(const std::vector<std::string>& arguments,
                       const std::vector<const Settings*>& jobs) {
  const auto asked = find_completion(arguments);
  const std::size_t equals = asked->find('=');
  std::string shell;
  if (equals != std::string::npos)
    shell = asked->substr(equals + 1);
  else if (asked + 1 != arguments.end())
    shell = asked[1];
  if (shell.empty())
    fail(ExitStatus::usage, "{}: has no value, expected one of: bash, zsh", completion_option);
  if (shell != "bash" && shell != "zsh")
    fail(ExitStatus::usage, "{}: '{}' is not one of: bash, zsh", completion_option, shell);
  return completion(shell, jobs);
}

}  // namespace nmt::config
