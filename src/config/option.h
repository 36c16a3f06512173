#pragma once

#include "config/enum_target.h"
#include "core/error.h"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace nmt::config {

/// The member that an option sets; monostate for a shorthand, which only sets other options.
using Target =
    std::variant<std::monostate, bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*,
                 std::vector<std::string>*, std::vector<int>*, std::vector<double>*, EnumTarget>;

/// Syntax of a text value.
enum class Form { plain, period, periods, device };

/// What an option determines. A resumed training refuses changes of shape, initialization and
/// vocabulary; it logs all other changes except those of locations.
enum class Role {
  procedure,       ///< how the training or the search proceeds
  shape,           ///< shapes and meaning of the weights
  initialization,  ///< initial weights
  vocabulary,      ///< the vocabularies
  hold_out,        ///< the pairs held out for validation, where no development set is given
  location,        ///< files, device, threads; does not affect results
  compute,         ///< rounding of the results: precision, libraries
};

/// Returns why a resumed training refuses to change the value from `before` to `now`, or "" if it
/// may. Values are the words joined by spaces, "none" for an empty list.
using ChangeRule = std::function<std::string(const std::string& before, const std::string& now)>;
/// Returns why the option has no effect with the other settings, or "" if it has one.
using IdleRule = std::function<std::string()>;

/// One option, as the command line, YAML, --help, --dump-config and JSON read it.
struct Option {
  /// `name` is in kebab-case; `help` is a noun phrase without a final period.
  Option(std::string name_, Target target_, std::string help_);

  std::string name;
  Target target;
  std::string help;
  std::string group;
  /// Other names. One letter: "-m". Two letters: "-lc" and "--lc". More: "--batch-size". With a
  /// leading dash: "-tok" only.
  std::vector<std::string> aliases;
  /// Allowed values of a text. Empty: any text. An enumeration has all its names unless one_of()
  /// restricts them.
  std::vector<std::string> words;
  double min = -std::numeric_limits<double>::infinity(),
         max = std::numeric_limits<double>::infinity();
  Form form = Form::plain;
  std::string alone;    ///< value of the option if given without one; empty: a value is required
  std::string metavar;  ///< name of the value in --help
  /// The default is chosen automatically; it is read and written as "auto".
  bool chosen = false;
  /// The default as words: the target's value when the Option is constructed.
  std::vector<std::string> initial;
  std::string unset;  ///< what an empty default means, for --help; empty: nothing
  /// What a program chooses where the option is not set at all, for --help. --dump-config writes
  /// the option as a comment as long as nothing has chosen, so that a run with that file chooses
  /// too. Empty: nothing.
  std::string chosen_otherwise;
  bool dumped = true;             ///< part of --dump-config
  std::vector<std::string> sets;  ///< options that this shorthand sets unless they are set
  std::string suffix;  ///< appended to the value that it sets ("after-epochs 5" -> "after 5e")
  int item = -1;       ///< index of the list element that it sets; -1: the whole value
  Role role = Role::procedure;
  bool per_rank = false;  ///< may differ between the ranks of a training
  bool writes = false;    ///< names a file that is written, so it cannot be a configuration
  /// A resumed training keeps the previous value unless one of these options is set; empty: it
  /// takes the new value.
  std::vector<std::string> kept_unless;
  ChangeRule change_rule;
  IdleRule idle_rule;
  /// Options that exclude this one. Both in the same place are an error; otherwise the one given
  /// later sets the other to `off`; where its own value is `off`, only if the other has its
  /// default.
  std::vector<std::string> excludes;
  std::string off;
  /// The option's name among the validation options of nmt-train; empty: it is not one of them.
  std::string validation_name;

  Option alias(std::initializer_list<const char*> names) &&;
  Option one_of(std::vector<std::string> allowed) &&;
  Option range(double low, double high = std::numeric_limits<double>::infinity()) &&;
  Option with_form(Form f) &&;
  Option value_alone(const char* value) &&;
  Option meta(const char* text) &&;
  Option chosen_by_default() &&;
  Option unset_means(const char* text) &&;
  Option written() &&;
  Option otherwise_chosen(std::string rule) &&;
  Option never_dumped() &&;
  Option spreads_to(std::vector<std::string> names, const char* ending = "", int element = -1) &&;

  Option with_role(Role r) &&;
  Option differs_by_rank() &&;
  /// Without names: the previous value is kept unless this option is set.
  Option kept_by_resume(std::vector<std::string> unless_set = {}) &&;
  Option changes_if(ChangeRule rule) &&;
  Option idle_when(IdleRule rule) &&;
  Option excluding(std::vector<std::string> names, const char* value_of_off) &&;
  Option in_validation(const char* other_name = "") &&;

  /// Whether values are texts: free, or limited by `words` or `form`.
  bool is_text() const;
  bool is_flag() const { return std::holds_alternative<bool*>(target); }
  bool is_list() const;
};

/// Concatenates lists of options.
std::vector<Option> joined(std::initializer_list<std::vector<Option>> lists);
/// The same options with a role.
std::vector<Option> with_role(Role role, std::vector<Option> options);
/// The same options under a heading of --help.
std::vector<Option> in_group(const char* group, std::vector<Option> options);

/// The options with these names, or all others. Error: an unknown name.
std::vector<Option> only(const std::vector<std::string>& names, std::vector<Option> options);
std::vector<Option> without(const std::vector<std::string>& names, std::vector<Option> options);
/// The option with that name. Error: there is none.
Option& named(std::vector<Option>& options, std::string_view name);

/// The options of a spec with the defaults of `fresh`, whatever values `spec` has. `list` returns
/// the options bound to a spec.
template <class Spec, class List>
std::vector<Option> with_defaults(Spec& spec, List list, Spec fresh = {}) {
  std::vector<Option> options = list(spec);
  const std::vector<Option> defaults = list(fresh);
  for (std::size_t i = 0; i < options.size(); ++i) options[i].initial = defaults[i].initial;
  return options;
}

/// Sets the target from one word, or from several for a list (`append` adds to the list). `where`
/// names the option in messages: "--beam-size", "c.yml:3: beam-size". Error (`status`): an invalid
/// value; the message states what was expected.
void assign(const Option& option, const std::vector<std::string>& words, const std::string& where,
            bool append = false, ExitStatus status = ExitStatus::usage);
/// Whether assign() accepts this single word.
bool accepts(const Option& option, const std::string& word);
/// The current value as words, from which assign() restores it.
std::vector<std::string> values(const Option& option);
/// values() of an option that is not set.
std::vector<std::string> initial_values(const Option& option);
/// values() joined by spaces; "none" for an empty list.
std::string joined_values(const Option& option);
/// Whether the value is "auto".
bool is_auto(const Option& option);
/// "an integer from 1 to 64", "one of: adam, adamw", ...
std::string expected(const Option& option);

/// User text for a one-line message: control characters are escaped; at most 80 bytes are shown.
std::string shown(std::string_view text);

}  // namespace nmt::config
