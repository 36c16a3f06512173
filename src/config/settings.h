#pragma once

#include "config/option.h"

#include <string>
#include <string_view>
#include <vector>

namespace nmt::config {

/// All settings of a program: the field lists of its specs and options of its own, and where their
/// values come from. Order: defaults < --config files from left to right < command line. Arguments
/// are parsed by Boost.Program_options, files by yaml-cpp. The built-in options --config,
/// --dump-config,
/// --completion, --help, --version, --build-info, --log-level and --quiet need no registration.
///
///   TrainSpec train; DataSpec data;
///   Settings settings("nmt-train", "[OPTIONS] [SOURCE TARGET]", "trains a translation model");
///   settings.add(fields(train)).add(fields(data)).positionals({"train-sets"});
///   settings.read(arguments);
class Settings {
 public:
  /// `usage`: what --help writes behind the program's name; `summary`: what the program does.
  Settings(std::string program, std::string usage, std::string summary);
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

  /// Takes options; their targets outlive the settings. A name that two specs share (--seed) sets
  /// both.
  Settings& add(std::vector<Option> options);
  /// The values that a text option allows, where only a higher floor knows them (the names of
  /// units).
  Settings& allow(std::string_view name, std::vector<std::string> words);
  /// Another name of an option, in this program alone: "q" is -q.
  Settings& alias(std::string_view name, const char* other);
  /// Options that arguments without a name fill, in order, one each; a list takes all that are left
  /// when it is the last. Those set by name on the command line are passed over.
  Settings& positionals(std::vector<std::string> names);

  /// Reads the arguments (without the program's name) and the --config files they name; then hands
  /// shorthands on (--unit). Errors (usage): unknown options or keys, all at once, each with the
  /// nearest known name; wrong values with option, value and what was expected, and file and line
  /// for YAML.
  void read(const std::vector<std::string>& arguments);
  /// As a --config file of that name with this text; for tests. Call before read().
  void read_yaml(const std::string& text, const std::string& name);

  /// Whether a file or the command line set it; "auto" is as not set.
  bool is_set(std::string_view name) const { return level(name) > 0; }
  /// 0: not set; 1, 2, ...: by the n-th --config file; one more than those: on the command line.
  int level(std::string_view name) const;

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
  /// YAML of the present values that reads back to the same; `full`, or only what was set.
  std::string yaml(bool full = true) const;
  /// The same of the settings that all ranks of a training have alike.
  std::string yaml_of_all_ranks() const;
  /// Names of all options, for documentation and tests.
  std::vector<std::string> names() const;

 private:
  struct Entry {
    explicit Entry(Option o) : option(std::move(o)) {}
    Option option;
    std::vector<Option> twins;  // the same name in other specs
    int level = 0;
    int said = 0;  // level at which its own name stood last; as level, but "auto" counts
    std::vector<std::string> given;  // words of a shorthand
    std::string where;               // it was set last
  };
  struct Forms;  // of the command line that Boost does not know
  struct Word {  // one option of the command line with its values
    Entry* entry;
    std::vector<std::string> values;
    std::string where;
  };
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
  std::string dump(bool full, bool for_ranks) const;
  void place_positionals(const std::vector<std::string>& loose, std::vector<Word>& words);
  void hand_on_shorthands();
  void settle_exclusions();

  std::string program_, usage_, summary_;
  std::vector<Entry> entries_;
  std::vector<std::string> positionals_;
  int files_ = 0;  // read so far

  std::vector<std::string> config_files_;
  bool version_ = false, build_info_ = false, quiet_ = false;
  std::string help_, completion_, dump_, log_level_ = "info";
};

}  // namespace nmt::config
