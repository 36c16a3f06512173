#include "config/settings.h"

#include <algorithm>
#include <limits>

#include <boost/program_options/cmdline.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <fmt/ranges.h>

namespace nmt::config {
namespace {

namespace po = boost::program_options;
using Words = std::vector<std::string>;

// Whether an argument is a value. Arguments that begin with a dash are options, except "-"
// (standard input) and negative numbers.
bool is_value(const std::string& argument) {
  if (argument.size() < 2 || argument[0] != '-') return true;
  return (argument[1] >= '0' && argument[1] <= '9') || (argument[1] == '.' && argument.size() > 2);
}

// A key that matches no option, so that Boost reports the argument as unknown.
constexpr const char* no_option = "--";

// Maximum number of values that Boost collects after an option; assign() parses them. The minimum
// is 0, since take_values() reports missing values and passes surplus ones to positional options.
class Tokens : public po::value_semantic {
 public:
  explicit Tokens(unsigned max) : max_(max) {}
  std::string name() const override { return ""; }
  unsigned min_tokens() const override { return 0; }
  unsigned max_tokens() const override { return max_; }
  bool is_composing() const override { return true; }
  bool is_required() const override { return false; }
  void parse(boost::any&, const Words&, bool) const override {}
  bool apply_default(boost::any&) const override { return false; }
  void notify(const boost::any&) const override {}

 private:
  unsigned max_;
};

// The option as Boost registers it: "name,other-name,letter".
std::string names_of(const Option& option) {
  std::string names = option.name, letter;
  for (const std::string& alias : option.aliases) {
    if (alias.size() == 1)
      letter = "," + alias;
    else if (alias[0] != '-')
      names += "," + alias;
  }
  return names + letter;
}

po::option option_of(const std::string& name, Words values, const std::string& token) {
  po::option option;
  option.string_key = name;
  option.value = std::move(values);
  option.original_tokens = {token};
  return option;
}

}  // namespace

// Parses syntax that Boost does not support, at the first remaining argument: --no-x, empty values
// (--x=), short names of several letters (-lc) and negative numbers as values. Underscores in names
// become dashes.
struct Settings::Forms {
  Settings& settings;

  std::vector<po::option> operator()(Words& arguments) const {
    std::string& token = arguments.front();
    std::vector<po::option> options;
    if (token == "--") return {};
    if (is_value(token))
      options = value(token);
    else
      options = token[1] == '-' ? long_name(token) : letters(token);
    if (!options.empty()) arguments.erase(arguments.begin());
    return options;
  }

 private:
  std::vector<po::option> value(const std::string& token) const {
    if (token.size() < 2 || token[0] != '-') return {};
    return {option_of("", {token}, token)};
  }

  std::vector<po::option> long_name(std::string& token) const {
    const std::size_t equals = std::min(token.find('='), token.size());
    std::string name = token.substr(2, equals - 2);
    std::replace(name.begin(), name.end(), '_', '-');
    if (name.size() < 2 || name[0] == '-') return {option_of(no_option, {}, token)};
    if (settings.find(name)) {
      token = "--" + name + token.substr(equals);
      if (equals + 1 == token.size()) return {option_of(name, {""}, token)};
      return {};
    }
    Entry* const negated = name.starts_with("no-") ? settings.find(name.substr(3)) : nullptr;
    if (equals < token.size() && negated && negated->option.is_flag())
      fail(ExitStatus::usage, "--{}: takes no value; give --{} or --{}=false", name, name,
           negated->option.name);
    if (equals < token.size()) return {option_of(no_option, {}, token)};
    if (!negated || !negated->option.is_flag()) return {};
    return {option_of(negated->option.name, {"false"}, "--" + name)};
  }

  std::vector<po::option> letters(const std::string& token) const {
    const std::string letters = token.substr(1);
    if (letters.size() < 2) return {};
    const Entry* whole = letters.size() == 2 ? settings.find(letters) : nullptr;
    if (!whole) whole = settings.find(token);
    if (whole) return {option_of(whole->option.name, {}, token)};
    // Combined flags: -bq.
    std::vector<po::option> flags;
    for (const char letter : letters) {
      const Entry* const flag = settings.find(std::string(1, letter));
      if (!flag || !flag->option.is_flag()) return {};
      flags.push_back(option_of(flag->option.name, {}, std::string("-") + letter));
    }
    return flags;
  }
};

// Returns the values that belong to the option, among those that Boost has collected after it: all
// for a list, one for others. A flag, or an option that needs no value, takes the next argument
// only if it is a valid value. The rest goes to positional options.
Words Settings::take_values(const Option& option, const std::string& where, Words values,
                            bool is_joined, Words& loose) {
  std::size_t count = option.is_list() ? values.size() : std::min<std::size_t>(values.size(), 1);
  if (is_joined)
    count = 1;
  else if (count > 0 && option.is_flag())
    count = values[0] == "true" || values[0] == "false";
  else if (count > 0 && !option.alone.empty() && !option.is_list())
    count = accepts(option, values[0]);
  loose.insert(loose.end(), values.begin() + static_cast<std::ptrdiff_t>(count), values.end());
  values.resize(count);
  if (values.empty() && option.is_flag()) values = {"true"};
  if (values.empty() && !option.alone.empty()) values = {option.alone};
  if (values.empty())
    fail(ExitStatus::usage, "{}: has no value, expected {}", where, expected(option));
  return values;
}

std::vector<Settings::Word> Settings::parse(const std::vector<std::string>& all) {
  const auto dashes = after_dashes_.empty() ? all.end() : std::find(all.begin(), all.end(), "--");
  const Words arguments(all.begin(), dashes);
  po::options_description description;
  for (const Entry& entry : entries_) {
    const unsigned most = entry.option.is_list() ? std::numeric_limits<unsigned>::max() : 1;
    description.add_options()(names_of(entry.option).c_str(), new Tokens(most), "");
  }
  namespace style = po::command_line_style;
  std::vector<po::option> parsed;
  try {
    parsed = po::command_line_parser(arguments)
                 .options(description)
                 .style(style::allow_long | style::long_allow_adjacent | style::long_allow_next |
                        style::allow_short | style::allow_dash_for_short |
                        style::short_allow_adjacent | style::short_allow_next)
                 .allow_unregistered()
                 .extra_style_parser(Forms{*this})
                 .run()
                 .options;
  } catch (const po::error&) {  // its what() does not end for a name that contains "%option%"
    fail(ExitStatus::usage, "the arguments '{}' cannot be read; --help lists all options",
         shown(fmt::format("{}", fmt::join(arguments, " "))));
  }

  std::vector<Word> words;
  Words unknown, loose;
  for (po::option& option : parsed) {
    if (option.string_key.empty()) {
      loose.insert(loose.end(), option.value.begin(), option.value.end());
      continue;
    }
    const std::string& token = option.original_tokens.at(0);
    Entry* const entry = option.unregistered ? nullptr : find(option.string_key);
    const bool is_long = token.starts_with("--");
    const bool is_joined = option.value.size() == option.original_tokens.size();  // --x=1, -b4
    if (!entry || (is_joined && !is_long && entry->option.is_flag())) {
      unknown.push_back(unknown_option(token));
      continue;
    }
    const std::string where = is_long     ? token.substr(0, token.find('='))
                              : is_joined ? token.substr(0, 2)
                                          : token;
    if (is_joined && !is_long && option.value[0].starts_with('=')) option.value[0].erase(0, 1);
    words.push_back(
        {entry, take_values(entry->option, where, option.value, is_joined, loose), where});
  }
  if (!unknown.empty())
    fail(ExitStatus::usage, "unknown option{} {}; --help lists all", unknown.size() == 1 ? "" : "s",
         fmt::join(unknown, ", "));
  place_positionals(loose, words);
  if (dashes != all.end() && dashes + 1 != all.end())
    words.push_back({find(after_dashes_), Words(dashes + 1, all.end()), after_dashes_});
  return words;
}

// The token, with the nearest known name as a suggestion.
std::string Settings::unknown_option(const std::string& token) const {
  if (!token.starts_with("--")) return shown(token);
  const std::string name = token.substr(0, token.find('='));
  std::string plain = name.substr(2);
  std::replace(plain.begin(), plain.end(), '_', '-');
  std::string near = nearest_name(plain);
  if (near.empty() && plain.starts_with("no-")) {
    near = nearest_name(plain.substr(3));
    if (!near.empty() && find(near)->option.is_flag()) near = "no-" + near;
  }
  return shown(name) + (near.empty() ? "" : " (did you mean --" + near + "?)");
}

void Settings::place_positionals(const std::vector<std::string>& loose, std::vector<Word>& words) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < positionals_.size() && at < loose.size(); ++i) {
    Entry* entry = find(positionals_[i]);
    if (std::any_of(words.begin(), words.end(),
                    [&](const Word& word) { return word.entry == entry; }))
      continue;
    const bool rest = entry->option.is_list() && i + 1 == positionals_.size();
    const std::size_t count = rest ? loose.size() - at : 1;
    const auto begin = loose.begin() + static_cast<std::ptrdiff_t>(at);
    words.push_back(
        {entry, {begin, begin + static_cast<std::ptrdiff_t>(count)}, entry->option.name});
    at += count;
  }
  if (at == loose.size()) return;
  std::vector<std::string> ways;
  if (!after_dashes_.empty()) ways.push_back(after_dashes_ + " follows --");
  const Entry* const input = find("input");
  if (input && input->option.metavar.starts_with("FILE")) ways.push_back("--input names a file");
  if (ways.empty()) ways.push_back("--help lists all options");
  fail(ExitStatus::usage, "'{}': unexpected argument; {}", shown(loose[at]), fmt::join(ways, ", "));
}

}  // namespace nmt::config
