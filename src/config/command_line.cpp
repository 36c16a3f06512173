#include "config/settings.h"

#include <algorithm>

#include <fmt/ranges.h>

namespace nmt::config {
namespace {

// "-" is standard input and "-3" a number: values. Everything else that begins with a dash is an
// option.
bool is_value(const std::string& argument) {
  if (argument.size() < 2 || argument[0] != '-') return true;
  return (argument[1] >= '0' && argument[1] <= '9') || (argument[1] == '.' && argument.size() > 2);
}

bool is_short(const std::string& alias) {
  return alias.size() <= 2;
}

}  // namespace

// Takes the values behind the option at arguments[at - 1]: all that follow for a list, one for
// others; a flag and an option that may stand alone take the next only if it is a value of theirs.
void Settings::take_values(const std::vector<std::string>& arguments, std::size_t& at, Word& word) {
  const Option& option = word.entry->option;
  const bool has_next = at < arguments.size() && is_value(arguments[at]);
  if (option.is_list()) {
    while (at < arguments.size() && is_value(arguments[at])) word.values.push_back(arguments[at++]);
  } else if (option.is_flag()) {
    const bool said = has_next && (arguments[at] == "true" || arguments[at] == "false");
    word.values = {said ? arguments[at++] : "true"};
  } else if (!option.alone.empty()) {
    word.values = {has_next && accepts(option, arguments[at]) ? arguments[at++] : option.alone};
  } else if (has_next) {
    word.values = {arguments[at++]};
  }
  if (word.values.empty())
    fail(ExitStatus::usage, "{}: has no value, expected {}", word.where, expected(option));
}

// --name, --name=value, --no-name; underscores stand for dashes.
void Settings::read_long(const std::vector<std::string>& arguments, std::size_t& at,
                         std::vector<Word>& words, std::vector<std::string>& unknown) {
  const std::string& argument = arguments[at++];
  const std::size_t equals = argument.find('=');
  std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
  std::replace(name.begin(), name.end(), '_', '-');
  Entry* entry = name.size() > 1 ? find(name) : nullptr;
  Word word{entry, {}, "--" + name};
  if (entry && equals != std::string::npos) {
    word.values = {argument.substr(equals + 1)};
    words.push_back(word);
  } else if (entry) {
    take_values(arguments, at, word);
    words.push_back(word);
  } else if (Entry* negated = name.starts_with("no-") ? find(name.substr(3)) : nullptr;
             negated && negated->option.is_flag() && equals == std::string::npos) {
    words.push_back({negated, {"false"}, word.where});
  } else {
    const std::string near = nearest_name(name.starts_with("no-") ? name.substr(3) : name);
    unknown.push_back(shown(argument.substr(0, equals)) +
                      (near.empty() ? "" : " (did you mean --" + near + "?)"));
    while (at < arguments.size() && is_value(arguments[at]))
      ++at;  // its values, as far as can be told
  }
}

std::vector<Settings::Word> Settings::parse(const std::vector<std::string>& arguments) {
  std::vector<Word> words;
  std::vector<std::string> unknown, loose;
  for (std::size_t at = 0; at < arguments.size();) {
    const std::string& argument = arguments[at];
    if (argument == "--") {
      loose.insert(loose.end(), arguments.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                   arguments.end());
      break;
    }
    if (is_value(argument)) {
      loose.push_back(argument);
      ++at;
    } else if (argument[1] == '-') {
      read_long(arguments, at, words, unknown);
    } else {
      // -lc as a whole, else -b with its value behind it or joined to it: -b 4, -b4.
      const std::string all = argument.substr(1), first = all.substr(0, 1);
      Entry* whole = is_short(all) ? find(all) : nullptr;
      Entry* entry = whole ? whole : find(first);
      if (!entry || (!whole && entry->option.is_flag())) {
        unknown.push_back(shown(argument));
        ++at;
        continue;
      }
      ++at;
      Word word{entry, {}, "-" + (whole ? all : first)};
      if (whole)
        take_values(arguments, at, word);
      else
        word.values = {all.substr(all[1] == '=' ? 2 : 1)};
      words.push_back(word);
    }
  }
  if (!unknown.empty())
    fail(ExitStatus::usage, "unknown option{} {}; --help lists all", unknown.size() == 1 ? "" : "s",
         fmt::join(unknown, ", "));
  place_positionals(loose, words);
  return words;
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
  if (at < loose.size())
    fail(ExitStatus::usage, "'{}': unexpected argument; --help lists all options",
         shown(loose[at]));
}

}  // namespace nmt::config
