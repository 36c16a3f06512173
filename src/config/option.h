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

/// The member that an option fills; monostate for a shorthand that only sets other options.
using Target =
    std::variant<std::monostate, bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*,
                 std::vector<std::string>*, std::vector<int>*, std::vector<double>*, EnumTarget>;

/// What a text value must look like.
enum class Form { plain, period, periods, device };

/// What a setting decides. Resumed trainings read it: a shape, an initialization or a vocabulary
/// cannot change, changes of a location are not logged, those of the others are.
enum class Role {
  procedure,       ///< how the training or the search proceeds
  shape,           ///< shapes and meaning of the weights
  initialization,  ///< initial weights
  vocabulary,      ///< the vocabularies
  hold_out,        ///< the pairs held out for validation, where no development set is given
  location,        ///< where a run takes place: files, device, threads; no part of the results
  compute,         ///< rounding of the results: precision, libraries
};

/// Why a training cannot continue with `now` in place of `before`, "" where it can. Both are the
/// option's words joined by spaces, "none" for an empty list.
using ChangeRule = std::function<std::string(const std::string& before, const std::string& now)>;
/// Why the option has no effect beside the other settings, "" where it has one.
using IdleRule = std::function<std::string()>;

/// One setting: everything that YAML, the command line, --help, --dump-config and JSON know of it.
struct Option {
  /// `name` in kebab-case; `help`: its meaning in one sentence without a full stop.
  Option(std::string name_, Target target_, std::string help_);

  std::string name;
  Target target;
  std::string help;
  std::string group;
  /// One letter: "-m"; two: "-lc" and "--lc"; more: "--batch-size"; with a dash: "-tok" alone.
  std::vector<std::string> aliases;
  /// Allowed values of a text, all those of an enumeration unless one_of() says fewer; empty: any.
  std::vector<std::string> words;
  double least = -std::numeric_limits<double>::infinity(),
         most = std::numeric_limits<double>::infinity();
  Form form = Form::plain;
  std::string alone;    ///< the value of the option given without one; empty: it needs one
  std::string metavar;  ///< what --help writes for the value
  /// The initial value stands for "picked automatically"; it is read and written as "auto".
  bool chosen = false;
  /// The default as words: the target's value when the option is made.
  std::vector<std::string> initial;
  bool dumped = true;             ///< part of --dump-config
  std::vector<std::string> sets;  ///< options that this one sets where they are not set themselves
  std::string suffix;  ///< added to the value that is handed on ("after-epochs 5" -> "after 5e")
  int item = -1;       ///< the value becomes this element of the list it sets
  Role role = Role::procedure;
  bool per_rank = false;  ///< may differ between the ranks of a training
  /// A resumed training keeps the value of the run before unless one of these is set now; empty:
  /// the present value holds.
  std::vector<std::string> kept_unless;
  ChangeRule change_rule;
  IdleRule idle_rule;
  /// Options that contradict this one when they are given in the same place. The one that is given
  /// later sets the other to `off`; a later value of `off` leaves the other alone.
  std::vector<std::string> excludes;
  std::string off;
  /// The option's name where a training validates; empty: validation does not have it.
  std::string validation_name;

  Option alias(std::initializer_list<const char*> names) &&;
  Option one_of(std::vector<std::string> allowed) &&;
  Option range(double low, double high = std::numeric_limits<double>::infinity()) &&;
  Option with_form(Form f) &&;
  Option value_alone(const char* value) &&;
  Option meta(const char* text) &&;
  Option chosen_by_default() &&;
  Option never_dumped() &&;
  Option spreads_to(std::vector<std::string> names, const char* ending = "", int element = -1) &&;

  Option with_role(Role r) &&;
  Option differs_by_rank() &&;
  /// Without names: unless the option itself is set.
  Option kept_by_resume(std::vector<std::string> unless_set = {}) &&;
  Option changes_if(ChangeRule rule) &&;
  Option idle_when(IdleRule rule) &&;
  Option excluding(std::vector<std::string> names, const char* value_of_off) &&;
  Option in_validation(const char* other_name = "") &&;

  /// A text that the option's words or form limit, or that is free.
  bool is_text() const;
  bool is_flag() const { return std::holds_alternative<bool*>(target); }
  bool is_list() const;
};

/// The options of several lists, in that order.
std::vector<Option> joined(std::initializer_list<std::vector<Option>> lists);
/// The same options with a role.
std::vector<Option> with_role(Role role, std::vector<Option> options);
/// The same options under a heading of --help.
std::vector<Option> in_group(const char* group, std::vector<Option> options);

/// The options with these names, or all others. Names that are not there are an error.
std::vector<Option> only(const std::vector<std::string>& names, std::vector<Option> options);
std::vector<Option> without(const std::vector<std::string>& names, std::vector<Option> options);
/// The option of that name. Error: there is none.
Option& named(std::vector<Option>& options, std::string_view name);

/// The fields of a spec with the defaults of a fresh one, whatever the spec holds at present:
/// `list` binds fields to a spec.
template <class Spec, class List>
std::vector<Option> with_defaults(Spec& spec, List list, Spec fresh = {}) {
  std::vector<Option> options = list(spec);
  const std::vector<Option> defaults = list(fresh);
  for (std::size_t i = 0; i < options.size(); ++i) options[i].initial = defaults[i].initial;
  return options;
}

/// Fills the target from words: one, or several for a list (`append`: after those it has). `where`
/// names the setting in messages: "--beam-size", "c.yml:3: beam-size". Error (`status`): a word
/// that is no such value; names what is expected.
void assign(const Option& option, const std::vector<std::string>& words, const std::string& where,
            bool append = false, ExitStatus status = ExitStatus::usage);
/// Whether the word alone would be accepted.
bool accepts(const Option& option, const std::string& word);
/// The present value as words, each of which assign() reads back to the same value.
std::vector<std::string> values(const Option& option);
/// The present words joined by spaces, "none" for an empty list.
std::string joined_values(const Option& option);
/// Whether the value was left to be picked automatically.
bool is_auto(const Option& option);
/// "an integer from 1 to 64", "one of: adam, adamw", ...
std::string expected(const Option& option);

/// Foreign text as it stands in a message of one line: control characters escaped, at most 80
/// bytes.
std::string shown(std::string_view text);
/// The known name nearest by edit distance (insertions, deletions, replacements, swaps of
/// neighbors); "" when none is near.
std::string nearest(std::string_view name, const std::vector<std::string>& known);

}  // namespace nmt::config
