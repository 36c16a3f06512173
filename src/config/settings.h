#pragma once

#include "config/option.h"

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace nmt::config {

/// All options of a program and the sources of their values. Precedence: defaults < --config files
/// from left to right < command line. Boost.Program_options parses arguments, yaml-cpp parses
/// files. The built-in options --config, --dump-config, --completion, --help, --version,
/// --build-info, --log-level and --quiet need no registration.
///
///   TrainSpec train; DataSpec data;
///   Settings settings("nmt-train", "[OPTIONS] [SOURCE TARGET]", "trains a translation model");
///   settings.add(fields(train)).add(fields(data)).positionals({"train-sets"});
///   settings.read(arguments);
class Settings {
 public:
  /// `usage`: the arguments in the usage line of --help; `summary`: what the program does.
  Settings(std::string program, std::string usage, std::string summary);
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

  /// Adds options, whose targets must outlive this object. A name that two specs share (--seed)
  /// sets both.
  Settings& add(std::vector<Option> options);
  /// Sets the allowed values of a text option that only a higher floor knows, such as the names of
  /// units.
  Settings& allow(std::string_view name, std::vector<std::string> words);
  /// Another name of an option in this program only: "q" is -q.
  Settings& alias(std::string_view name, const char* other);
  /// Options that positional arguments set, in order, one each; a list in the last place takes all
  /// remaining arguments. Options given by name on the command line are skipped.
  Settings& positionals(std::vector<std::string> names);
  /// A list option that all arguments after "--" set. Without it they are positional arguments.
  Settings& after_dashes(std::string name);

  /// Reads the arguments (without the program's name) and the --config files they name; then
  /// applies shorthands (--unit). Errors (usage): all unknown options or keys, each with the
  /// nearest known name; invalid values, with option, value and what was expected, and with file
  /// and line for YAML.
  void read(const std::vector<std::string>& arguments);
  /// Reads YAML text as a --config file of that name. Call it before read(). "": messages name no
  /// lines.
  void read_yaml(const std::string& text, const std::string& name);

  /// Whether a file or the command line sets the option to a value other than "auto".
  bool is_set(std::string_view name) const { return level(name) > 0; }
  /// Where the value was set. 0: nowhere; n: in the n-th --config file; number of files + 1: on the
  /// command line.
  int level(std::string_view name) const;
  /// Whether the command line sets the option to a value other than "auto".
  bool is_typed(std::string_view name) const { return level(name) == files_ + 1; }
  /// Whether a shorthand set the value.
  bool is_by_shorthand(std::string_view name) const;

  /// The options whose idle_rule says that they have no effect, with the reasons: "a (why), b
  /// (why)"; "" if there is none. Those of the command line, or those of files, with file and line.
  /// Options with their default value do not count.
  std::string without_effect(bool typed) const;
  /// The program evaluates idle rules itself, after it has chosen values that they depend on;
  /// run_tool() does not.
  Settings& checks_effects_itself();
  bool has_effects_checked_later() const { return effects_later_; }

  /// An error message that begins with the name of a setting, such as "heads: 3 must divide 8",
  /// with the file and line that set it, if a file did.
  std::string with_source(const std::string& message) const;

  bool asks_help() const { return help_ == "text"; }
  /// --help=markdown: the options as a section of the reference of options.
  bool asks_reference() const { return help_ == "markdown"; }
  /// "", "bash" or "zsh".
  const std::string& asks_completion() const { return completion_; }
  bool asks_version() const { return version_; }
  bool asks_build_info() const { return build_info_; }
  /// "", "full" or "minimal".
  const std::string& asks_dump() const { return dump_; }
  const std::string& log_level() const { return log_level_; }

  const std::string& program() const { return program_; }
  std::string help() const;
  std::string reference() const;
  /// A script that completes the program's command line in that shell: "bash" or "zsh".
  std::string completion(const std::string& shell) const;
  std::vector<const Option*> options() const;
  /// The current values as YAML for --config: all of them (`full`), or only those that were set.
  /// Values without effect (without_effect()) are left out.
  /// What is chosen unless it is set is a comment.
  std::string yaml(bool full = true) const;
  /// yaml() leaves these options out from now on, such as those that a task has no use for.
  Settings& leave_out(const std::vector<std::string>& names);
  /// All current values as YAML.
  std::string stored_yaml() const;
  /// The same for the options that must be equal on all ranks of a training.
  std::string yaml_of_all_ranks() const;
  /// Names of all options, for documentation and tests.
  std::vector<std::string> names() const;

 private:
  struct Entry {
    explicit Entry(Option o) : option(std::move(o)) {}
    Option option;
    std::vector<Option> twins;  // the same name in other specs
    int level = 0;
    int said = 0;               // level at which the option itself was last given, "auto" included
    bool by_shorthand = false;  // the last value is that of one
    std::vector<std::string> given;  // words of a shorthand
    std::string where;               // source of the last value, for messages
  };
  struct Forms;  // command-line syntax that Boost does not support
  struct Word {  // one option of the command line with its values
    Entry* entry;
    std::vector<std::string> values;
    std::string where;
  };
  struct NameHash {
    using is_transparent = void;  // finds std::string_view
    std::size_t operator()(std::string_view name) const {
      return std::hash<std::string_view>()(name);
    }
  };
  void add_alias(Entry& entry, const std::string& name);
  Entry* find(std::string_view name);
  const Entry* find(std::string_view name) const;
  std::string nearest_name(std::string_view name) const;
  void set(Entry& entry, const std::vector<std::string>& words, const std::string& where,
           int level);
  std::vector<Word> parse(const std::vector<std::string>& arguments);
  static std::vector<std::string> take_values(const Option& option, const std::string& where,
                                              std::vector<std::string> values, bool is_joined,
                                              std::vector<std::string>& loose);
  std::string unknown_option(const std::string& token) const;
  void read_yaml_file(const std::string& path);
  std::vector<std::string> groups() const;
  enum class Extent { given, full, stored, all_ranks };
  std::string dump(Extent extent) const;
  void place_positionals(const std::vector<std::string>& loose, std::vector<Word>& words);
  void hand_on_shorthands();
  void settle_exclusions();
  void keep_configurations() const;

  std::string program_, usage_, summary_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t, NameHash, std::equal_to<>>
      places_;  // in entries_, of names and aliases
  std::vector<std::string> positionals_;
  std::string after_dashes_;
  int files_ = 0;  // --config files read so far

  std::vector<std::string> config_files_;
  bool version_ = false, build_info_ = false, quiet_ = false, effects_later_ = false;
  std::string help_, completion_, dump_, log_level_ = "info";
};

/// The script for a program with several jobs: Settings of "PROGRAM JOB", one for each job.
std::string completion(const std::string& shell, const std::vector<const Settings*>& jobs);
/// Whether the arguments of such a program have --completion, also behind a job.
bool asks_completion(const std::vector<std::string>& arguments);
/// What such arguments ask for. Error (usage): a shell that is neither bash nor zsh.
std::string completion(const std::vector<std::string>& arguments,
                       const std::vector<const Settings*>& jobs);

}  // namespace nmt::config
