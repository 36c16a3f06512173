#include "config/option.h"

#include "config/device.h"
#include "config/period.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/ranges.h>

namespace nmt::config {
namespace {

template <class... Cases>
struct Overload : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overload(Cases...) -> Overload<Cases...>;  // clang 14 cannot derive it

template <class T>
struct ElementOf {
  using type = T;
};
template <class T>
struct ElementOf<std::vector<T>> {
  using type = T;
};

bool has_form(const Option& option, const std::string& word) {
  try {
    if (option.form == Form::period) parse_period(word, option.name);
    if (option.form == Form::periods)
      parse_periods(absolute_periods(word, {}, option.name), option.name);
    if (option.form == Form::device) parse_device(word, option.name);
  } catch (const Error&) {
    return false;
  }
  return true;
}

std::optional<bool> read_bool(const std::string& word) {
  for (const char* yes : {"true", "yes", "on", "True", "TRUE"})
    if (word == yes) return true;
  for (const char* no : {"false", "no", "off", "False", "FALSE"})
    if (word == no) return false;
  return std::nullopt;
}

/// Parses a value of type T; nullopt if the word is invalid.
template <class T>
std::optional<T> parse(const std::string& word) {
  if constexpr (std::is_same_v<T, bool>) {
    return read_bool(word);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return word;
  } else {
    T value{};
    const char* end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, value);
    if (word.empty() || error != std::errc() || rest != end) return std::nullopt;
    return value;
  }
}

bool is_allowed(const Option& option, const std::string& word) {
  return option.words.empty() ||
         std::find(option.words.begin(), option.words.end(), word) != option.words.end();
}

template <class T>
bool in_range(const Option& option, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return true;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return is_allowed(option, value) && has_form(option, value);
  } else {
    const double number = static_cast<double>(value);
    return std::isfinite(number) && number >= option.min && number <= option.max;
  }
}

std::vector<std::string> raw_values(const Option& option) {
  std::vector<std::string> words;
  std::visit(
      [&](auto target) {
        using T = std::remove_pointer_t<decltype(target)>;
        if constexpr (std::is_same_v<T, std::monostate>)
          return;
        else if constexpr (std::is_same_v<T, EnumTarget>)
          words = target.values();
        else if constexpr (std::is_same_v<T, typename ElementOf<T>::type>)
          words.push_back(fmt::format("{}", *target));
        else
          for (const auto& value : *target) words.push_back(fmt::format("{}", value));
      },
      option.target);
  return words;
}

/// Sets the target without checking the range.
void fill(const Option& option, const std::vector<std::string>& words, bool append) {
  std::visit(
      [&](auto target) {
        using T = std::remove_pointer_t<decltype(target)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return;
        } else if constexpr (std::is_same_v<T, EnumTarget>) {
          target.fill(words, append);
        } else if constexpr (std::is_same_v<T, typename ElementOf<T>::type>) {
          *target = *parse<T>(words[0]);
        } else {
          if (!append) target->clear();
          for (const std::string& word : words)
            target->push_back(*parse<typename T::value_type>(word));
        }
      },
      option.target);
}

}  // namespace

Option::Option(std::string name_, Target target_, std::string help_)
    : name(std::move(name_)), target(target_), help(std::move(help_)), initial(raw_values(*this)) {
  if (const auto* enumeration = std::get_if<EnumTarget>(&target)) words = enumeration->words();
}

Option Option::alias(std::initializer_list<const char*> names) && {
  aliases.assign(names.begin(), names.end());
  return std::move(*this);
}
Option Option::one_of(std::vector<std::string> allowed) && {
  words = std::move(allowed);
  return std::move(*this);
}
Option Option::range(double low, double high) && {
  min = low;
  max = high;
  return std::move(*this);
}
Option Option::with_form(Form f) && {
  form = f;
  return std::move(*this);
}
Option Option::value_alone(const char* value) && {
  alone = value;
  return std::move(*this);
}
Option Option::meta(const char* text) && {
  metavar = text;
  return std::move(*this);
}
Option Option::chosen_by_default() && {
  chosen = true;
  kept_unless = {name};
  return std::move(*this);
}
Option Option::unset_means(const char* text) && {
  unset = text;
  return std::move(*this);
}
Option Option::otherwise_chosen(std::string rule) && {
  chosen_otherwise = std::move(rule);
  return std::move(*this);
}
Option Option::never_dumped() && {
  dumped = false;
  return std::move(*this);
}
Option Option::written() && {
  writes = true;
  return std::move(*this);
}
Option Option::spreads_to(std::vector<std::string> names, const char* ending, int element) && {
  sets = std::move(names);
  suffix = ending;
  item = element;
  return std::move(*this);
}

Option Option::with_role(Role r) && {
  role = r;
  return std::move(*this);
}
Option Option::differs_by_rank() && {
  per_rank = true;
  return std::move(*this);
}
Option Option::kept_by_resume(std::vector<std::string> unless_set) && {
  kept_unless = std::move(unless_set);
  if (kept_unless.empty()) kept_unless = {name};
  return std::move(*this);
}
Option Option::changes_if(ChangeRule rule) && {
  change_rule = std::move(rule);
  return std::move(*this);
}
Option Option::idle_when(IdleRule rule) && {
  idle_rule = std::move(rule);
  return std::move(*this);
}
Option Option::excluding(std::vector<std::string> names, const char* value_of_off) && {
  excludes = std::move(names);
  off = value_of_off;
  return std::move(*this);
}
Option Option::in_validation(const char* other_name) && {
  validation_name = *other_name ? other_name : name;
  return std::move(*this);
}

bool Option::is_text() const {
  return std::holds_alternative<std::string*>(target) ||
         std::holds_alternative<std::vector<std::string>*>(target) ||
         std::holds_alternative<EnumTarget>(target);
}

bool Option::is_list() const {
  if (const auto* enumeration = std::get_if<EnumTarget>(&target)) return enumeration->is_list();
  return std::holds_alternative<std::vector<std::string>*>(target) ||
         std::holds_alternative<std::vector<int>*>(target) ||
         std::holds_alternative<std::vector<double>*>(target);
}

std::vector<Option> joined(std::initializer_list<std::vector<Option>> lists) {
  std::vector<Option> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

std::vector<Option> with_role(Role role, std::vector<Option> options) {
  for (Option& option : options) option.role = role;
  return options;
}

std::vector<Option> in_group(const char* group, std::vector<Option> options) {
  for (Option& option : options) option.group = group;
  return options;
}

Option& named(std::vector<Option>& options, std::string_view name) {
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&](const Option& option) { return option.name == name; });
  NMT_CHECK(found != options.end(), "there is no option --{}", name);
  return *found;
}

std::vector<Option> only(const std::vector<std::string>& names, std::vector<Option> options) {
  std::vector<Option> chosen;
  for (const std::string& name : names) chosen.push_back(std::move(named(options, name)));
  return chosen;
}

std::vector<Option> without(const std::vector<std::string>& names, std::vector<Option> options) {
  for (const std::string& name : names) {
    const Option* const option = &named(options, name);
    options.erase(options.begin() + (option - options.data()));
  }
  return options;
}

std::string expected(const Option& option) {
  const auto number = [&](const char* one) {
    std::string range;
    const bool low = std::isfinite(option.min), high = std::isfinite(option.max);
    if (low && high)
      range = fmt::format(" from {} to {}", option.min, option.max);
    else if (low)
      range = fmt::format(" of at least {}", option.min);
    else if (high)
      range = fmt::format(" of at most {}", option.max);
    return one + range;
  };
  const auto word = [&]() -> std::string {
    if (option.form == Form::period)
      return "a training length: a number with u (updates), e (epochs) or t (target tokens), such "
             "as 500u, 100Ku, 10e";
    if (option.form == Form::periods)
      return "a list of training lengths: numbers with u (updates), e (epochs) or t (target "
             "tokens), such as 10e,100Ku; +10e is counted from the current progress";
    if (option.form == Form::device) return "cpu, cuda, cuda:N or auto";
    if (option.words.empty()) return "a text";
    std::vector<std::string> named;
    for (const std::string& allowed : option.words)
      if (!allowed.empty()) named.push_back(allowed);
    return fmt::format("one of: {}", fmt::join(named, ", "));
  };
  return std::visit(Overload{[&](std::monostate) {
                               return std::isfinite(option.min) ? number("a number")
                                      : option.words.empty()    ? "a value"
                                                                : word();
                             },
                             [](bool*) -> std::string { return "true or false"; },
                             [&](std::string*) { return word(); },
                             [&](std::vector<std::string>*) { return word(); },
                             [&](const EnumTarget&) { return word(); },
                             [&](double*) { return number("a number"); },
                             [&](std::vector<double>*) { return number("a number"); },
                             [&](std::uint64_t*) -> std::string {
                               return std::isfinite(option.min) || std::isfinite(option.max)
                                          ? number("an integer")
                                          : "an integer from 0 to 18446744073709551615";
                             },
                             [&](auto*) { return number("an integer"); }},
                    option.target);
}

// A number to which a unit can be appended: "20", "+0.5", "10K".
bool is_plain(std::string_view word) {
  if (word.starts_with('+')) word.remove_prefix(1);
  if (!word.empty() && std::string_view("KMG").find(word.back()) != word.npos)
    word.remove_suffix(1);
  return !word.empty() && word.find_first_not_of("0123456789.") == word.npos;
}

bool accepts(const Option& option, const std::string& word) {
  if (option.chosen && word == automatic) return true;
  return std::visit(
      [&](auto target) {
        using T = std::remove_pointer_t<decltype(target)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          if (!option.suffix.empty() && !is_plain(word)) return false;
          // What is no number is left to the options that the shorthand sets.
          const auto number = parse<double>(word);
          return !number || in_range(option, *number);
        } else if constexpr (std::is_same_v<T, EnumTarget>) {
          return is_allowed(option, word);
        } else {
          const auto value = parse<typename ElementOf<T>::type>(word);
          return value && in_range(option, *value);
        }
      },
      option.target);
}

void assign(const Option& option, const std::vector<std::string>& words, const std::string& where,
            bool append, ExitStatus status) {
  if (!option.is_list() && words.size() != 1)
    fail(status, "{}: {} values given, expected {}", where, words.size(), expected(option));
  if (option.chosen && words.size() == 1 && words[0] == automatic)
    return fill(option, option.initial, false);
  for (const std::string& word : words)
    if (!accepts(option, word) || (option.chosen && word == automatic))
      fail(status, "{}: '{}' is not {}", where, shown(word), expected(option));
  fill(option, words, append);
}

bool is_auto(const Option& option) {
  return option.chosen && raw_values(option) == option.initial;
}

std::vector<std::string> values(const Option& option) {
  return is_auto(option) ? std::vector<std::string>{automatic} : raw_values(option);
}

std::vector<std::string> initial_values(const Option& option) {
  return option.chosen ? std::vector<std::string>{automatic} : option.initial;
}

std::string joined_values(const Option& option) {
  const std::vector<std::string> words = values(option);
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, " "));
}

std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 80)) {
    if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + (text.size() > 80 ? "..." : "");
}

}  // namespace nmt::config
