#include "text/n_best_line.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace nmt {
namespace {

constexpr std::string_view separator = " ||| ";

// Whether a field starts as the features do: "NAME= ".
bool names_feature(std::string_view field) {
  const std::size_t end = field.find(' ');
  return end != std::string_view::npos && end > 1 && field[end - 1] == '=';
}

// Whether a field is an alignment, such as "0-0 2-1"; it may be empty.
bool is_alignment(std::string_view field) {
  return field.find_first_not_of("0123456789- ") == std::string_view::npos;
}

// Where the text ends in what follows the id: at the features or at the alignment before them,
// since the text may have separators too. Without features, at the first separator.
std::size_t end_of_text(std::string_view line) {
  const std::size_t first = line.find(separator);
  std::size_t before = std::string_view::npos;  // the separator before the one at `at`
  for (std::size_t at = first; at != std::string_view::npos; at = line.find(separator, at + 1)) {
    if (names_feature(line.substr(at + separator.size()))) {
      if (before == std::string_view::npos) return at;
      const std::size_t begin = std::min(before + separator.size(), at);
      return is_alignment(line.substr(begin, at - begin)) ? before : at;
    }
    before = at;
  }
  return first;
}

}  // namespace

std::optional<NBestLine> read_n_best(std::string_view line) {
  const std::size_t first = line.find(separator);
  if (first == std::string_view::npos) return std::nullopt;
  NBestLine parts;
  const auto parsed = std::from_chars(line.data(), line.data() + first, parts.id);
  if (parsed.ec != std::errc() || parsed.ptr != line.data() + first || parts.id < 0)
    return std::nullopt;
  // An empty text gives " ||| ||| "; the separators do not share a blank.
  line.remove_prefix(first + separator.size());
  const std::size_t second = end_of_text(line);
  parts.text = line.substr(0, second);
  if (second == std::string_view::npos) return parts;
  line.remove_prefix(second + separator.size());
  // An alignment may precede the features, and follow the score.
  std::size_t begin = 0;
  while (begin != std::string_view::npos && !names_feature(line.substr(begin))) {
    begin = line.find(separator, begin);
    if (begin != std::string_view::npos) begin += separator.size();
  }
  if (begin == std::string_view::npos) {  // features without names
    const std::size_t end = line.find(separator);
    const bool is_behind_alignment = end != std::string_view::npos &&
                                     line.find(separator, end + 1) != std::string_view::npos &&
                                     is_alignment(line.substr(0, end));
    begin = is_behind_alignment ? end + separator.size() : 0;
  }
  const std::size_t third = line.find(separator, begin);
  parts.features = line.substr(0, third);
  if (third != std::string_view::npos) parts.rest = line.substr(third);
  return parts;
}

}  // namespace nmt
