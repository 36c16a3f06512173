#include "text/glossary.h"

#include "core/error.h"
#include "text/lines.h"

#include <algorithm>
#include <functional>

namespace nmt {
namespace {
constexpr std::size_t longest_term = 1000;  // bytes
constexpr std::size_t max_terms = 1'000'000;

std::string without_outer_spaces(std::string_view text) {
  constexpr std::string_view spaces = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(spaces);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(spaces) + 1 - first));
}

}  // namespace

Glossary Glossary::load(const std::string& path) {
  LineReader reader = LineReader::open(path);
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);) {
    if (lines.size() == max_terms)
      fail(ExitStatus::data, "{}: more than {} lines, too many for a glossary", path, max_terms);
    lines.push_back(std::move(line));
  }
  reader.notes().warn(reader.name());
  return from_lines(lines, path);
}

Glossary Glossary::from_lines(const std::vector<std::string>& lines, const std::string& name) {
  Glossary glossary;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (is_blank(line)) continue;
    const std::size_t tab = line.find('\t');
    const std::string source = without_outer_spaces(line.substr(0, tab));
    const std::string target =
        tab == std::string::npos ? source : without_outer_spaces(line.substr(tab + 1));
    if (target.find('\t') != std::string::npos)
      fail(ExitStatus::data, "{}:{}: more than two columns; expected 'source TAB target'", name,
           i + 1);
    for (const std::string& side : {source, target})
      if (is_blank(side) || side.size() > longest_term)
        fail(ExitStatus::data, "{}:{}: a term of {} bytes; expected 1 to {} bytes of text", name,
             i + 1, side.size(), longest_term);
    const auto [place, is_new] = glossary.targets_.emplace(source, target);
    if (!is_new && place->second != target)
      fail(ExitStatus::data, "{}:{}: a second target for the term '{}'", name, i + 1, source);
    std::vector<std::size_t>& lengths =
        glossary.lengths_[static_cast<unsigned char>(source.front())];
    if (std::find(lengths.begin(), lengths.end(), source.size()) == lengths.end())
      lengths.push_back(source.size());
  }
  for (std::vector<std::size_t>& lengths : glossary.lengths_)
    std::sort(lengths.begin(), lengths.end(), std::greater<>());
  return glossary;
}

void Glossary::add_terms(std::string_view line, std::vector<TextSpan>& spans) const {
  std::vector<TextSpan> all;
  std::size_t next = 0;  // span that ends behind the place
  for (std::size_t at = 0; at < line.size();) {
    while (next < spans.size() && spans[next].end <= at) ++next;
    if (next < spans.size() && spans[next].begin <= at) {
      at = spans[next].end;
      continue;
    }
    const std::size_t room = (next < spans.size() ? spans[next].begin : line.size()) - at;
    std::size_t length = 0;
    for (const std::size_t candidate : lengths_[static_cast<unsigned char>(line[at])]) {
      if (candidate > room) continue;
      const auto found = targets_.find(line.substr(at, candidate));
      if (found == targets_.end() || !is_whole_word(line, at, at + candidate)) continue;
      all.push_back({at, at + candidate, SpanKind::term, found->second});
      length = candidate;
      break;
    }
    at += std::max<std::size_t>(length, 1);
  }
  if (all.empty()) return;
  all.insert(all.end(), spans.begin(), spans.end());
  std::sort(all.begin(), all.end(),
            [](const TextSpan& a, const TextSpan& b) { return a.begin < b.begin; });
  spans = std::move(all);
}

}  // namespace nmt
