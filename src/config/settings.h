#pragma once

#include "config/option.h"

#include <string>
#include <string_view>
#include <vector>

namespace nmt::config {

/// All settings of a program: the field lists of its specs and options of its own, and where their
/// values come from. Order: defaults < --config files from left to right < command line. The
/// built-in options --config, --dump-config,
/// --help,
/// --version, --build-info, --log-level and --quiet need no registration.
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
  /// Options that arguments without a name fill, in order, one each; a list takes all that are left
  /// when it is the last. Those set by name on the command line are passed over.
  Settings& positionals(std::vector<std::string> names);

  /// Reads the arguments (without the program's name) and the --config files they name; then hands
  /// shorthands on
  /// (--unit). Errors (usage): unknown options or keys, all at once, each with the nearest known
  /// name; wrong values with option, value and what was expected, and file and line for YAML.
  void read(const std::vector<std::string>& arguments);
  /// As a --config file of that name with this text; for tests. Call before read().
  void read_yaml(const std::string& text, const std::string& name);

  /// Whether a file or the command line set it; "auto" is as not set.
  bool is_set(std::string_view name) const { return level(name) > 0; }
  /// 0: not set; 1, 2, ...: by the n-th --config file; one more than those: on the command line.
  int level(std::string_view name) const;

  bool asks_help() const { return help_; }
  bool asks_version() const { return version_; }
  bool asks_build_info() const { return build_info_; }
  /// "", "full" or "minimal".
  const std::string& asks_dump() const { return dump_; }
  const std::string& log_level() const { return log_level_; }

  const std::string& program() const { return program_; }
  std::string help() const;
  /// YAML of the present values that reads back to the same; `full`, or only what was set.
  std::string yaml(bool full = true) const;
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
  void read_long(const std::vector<std::string>& arguments, std::size_t& at,
                 std::vector<Word>& words, std::vector<std::string>& unknown);
  void take_values(const std::vector<std::string>& arguments, std::size_t& at, Word& word);
  void read_yaml_file(const std::string& path);
  void place_positionals(const std::vector<std::string>& loose, std::vector<Word>& words);
  void hand_on_shorthands();
  void settle_length_rules();

  std::string program_, usage_, summary_;
  std::vector<Entry> entries_;
  std::vector<std::string> positionals_;
  int files_ = 0;  // read so far

  std::vector<std::string> config_files_;
  bool help_ = false, version_ = false, build_info_ = false, quiet_ = false;
  std::string dump_, log_level_ = "info";
};

}  // namespace nmt::config
