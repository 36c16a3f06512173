#include "config/settings.h"

#include <algorithm>

#include <fmt/ranges.h>

namespace nmt::config {
namespace {

constexpr std::size_t margin = 36, width = 110;  // columns

std::string value_name(const Option& option) {
  if (option.is_flag()) return "";
  std::string name = option.metavar;
  if (name.empty() && !option.words.empty()) {
    std::vector<std::string> named;
    for (const std::string& word : option.words)
      if (!word.empty()) named.push_back(word);
    name = fmt::format("{}", fmt::join(named, "|"));
  }
  if (name.empty())
    name = std::holds_alternative<double*>(option.target) ? "X"
           : option.is_text() && !option.is_list()        ? "TEXT"
                                                          : "N";
  return option.alone.empty() ? " " + name : " [" + name + "]";
}

bool is_short(const std::string& alias) {
  return alias.size() <= 2 || alias[0] == '-';
}

std::string left_side(const Option& option) {
  std::string names;
  for (const std::string& alias : option.aliases)
    if (is_short(alias)) names += (alias[0] == '-' ? "" : "-") + alias + " ";
  names += "--" + option.name;
  for (const std::string& alias : option.aliases)
    if (!is_short(alias)) names += ", --" + alias;
  return names + value_name(option);
}

std::string range(const Option& option) {
  const std::string all = expected(option);
  for (const char* start : {" from ", " of at least ", " of at most "})
    if (const std::size_t at = all.find(start); at != std::string::npos && !option.is_flag())
      return all.substr(all.compare(at, 4, " of ") == 0 ? at + 4 : at + 1);
  return "";
}

std::string meaning(const Option& option) {
  std::string notes;
  const auto note = [&](const std::string& text) { notes += (notes.empty() ? "" : "; ") + text; };
  if (!option.words.empty() && !option.metavar.empty() && !option.is_flag()) note(expected(option));
  if (const std::string r = range(option);
      !r.empty() && option.words.empty() && option.form == Form::plain)
    note(r);
  if (!option.alone.empty()) note("without value: " + option.alone);
  if (option.chosen)
    note("default: auto");
  else if (!option.chosen_otherwise.empty())
    note("default: " + option.chosen_otherwise);
  else if (option.is_flag())
    note(std::string("default: ") + (option.initial[0] == "true" ? "on" : "off"));
  else if (option.is_list() ? option.initial.empty()
                            : option.is_text() && option.initial[0].empty()) {
    if (!option.unset.empty()) note("default: " + option.unset);
  } else if (!option.initial.empty())
    note(fmt::format("default: {}", fmt::join(option.initial, " ")));
  return option.help + (notes.empty() ? "" : " (" + notes + ")");
}

/// Wraps `text` at `width` columns, indented by the margin.
std::string wrapped(const std::string& text) {
  std::string lines;
  std::size_t column = margin;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (column > margin && column + 1 + end - at > width) {
      lines += "\n" + std::string(margin, ' ');
      column = margin;
    } else if (column > margin) {
      lines += ' ';
      ++column;
    }
    lines += text.substr(at, end - at);
    column += end - at;
    at = end + 1;
  }
  return lines;
}

}  // namespace

std::string Settings::help() const {
  std::string text = fmt::format("{}: {}\nUsage: {} {}\n", program_, summary_, program_, usage_);
  for (const std::string& group : groups()) {
    text += "\n" + group + ":\n";
    for (const Entry& entry : entries_) {
      if (entry.option.group != group) continue;
      std::string left = "  " + left_side(entry.option);
      left += left.size() + 1 < margin ? std::string(margin - left.size(), ' ')
                                       : "\n" + std::string(margin, ' ');
      text += left + wrapped(meaning(entry.option)) + "\n";
    }
  }
  text +=
      "\nFlags are switched off by --no-FLAG or --FLAG=false. Names may contain _ instead of -.\n";
  return text;
}

std::string Settings::reference() const {
  const auto cell = [](std::string text) {
    for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
      text.insert(at, 1, '\\');
    return text;
  };
  std::string text =
      fmt::format("## {}\n\n{}.\n\n```\n{} {}\n```\n", program_, summary_, program_, usage_);
  for (const std::string& group : groups()) {
    text += fmt::format("\n### {}: {}\n\n| Option | Meaning |\n|---|---|\n", program_, group);
    for (const Entry& entry : entries_)
      if (entry.option.group == group)
        text += fmt::format("| `{}` | {} |\n", cell(left_side(entry.option)),
                            cell(meaning(entry.option)));
  }
  return text;
}

}  // namespace nmt::config
