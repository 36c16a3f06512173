#include "app/distill/parts.h"

#include "core/error.h"
#include "core/files/file.h"
#include "core/number_text.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace nmt::app {
namespace {

constexpr std::string_view separator = " ||| ";
constexpr const char* remedy = "remove the file, and the same command makes it again";

[[noreturn]] void damaged(const std::string& path, std::int64_t line, const char* expected) {
  fail(ExitStatus::data, "{}:{}: expected {}; {}", path, line, expected, remedy);
}

// A file that was cut within its last line.
void require_last_line(const LineReader& reader, const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  char last = '\n';
  if (file.tellg() > 0 && file.seekg(-1, std::ios::end)) file.get(last);
  if (last != '\n') damaged(path, reader.lines(), "a complete last line");
}

}  // namespace

bool TextParts::next(std::vector<std::string>& lines) {
  lines.clear();
  std::string line;
  while (std::ssize(lines) < part_lines_ && reader_.next(line)) lines.push_back(line);
  if (lines.empty()) return false;
  ++number_;
  return true;
}

bool is_file(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

// "id ||| text ||| F0= x ||| score". The text may contain the separator.
std::vector<std::vector<std::string>> read_n_best(const std::string& path, std::int64_t first_line,
                                                  std::size_t lines) {
  std::vector<std::vector<std::string>> lists(lines);
  LineReader reader = LineReader::open(path);
  std::size_t at = 0;
  for (std::string line; reader.next(line);) {
    const std::size_t text = line.find(separator), score = line.rfind(separator),
                      features = score == line.npos || score == 0
                                     ? line.npos
                                     : line.rfind(separator, score - 1);
    std::int64_t id = -1;
    if (text != line.npos) std::from_chars(line.data(), line.data() + text, id);
    const std::int64_t number = id - first_line;
    if (features == line.npos || features < text || number < static_cast<std::int64_t>(at) ||
        number > static_cast<std::int64_t>(at) + 1 || number >= static_cast<std::int64_t>(lines) ||
        (number > static_cast<std::int64_t>(at) && lists[at].empty()))
      damaged(path, reader.lines(), "a line of the n-best list of the next source line");
    at = static_cast<std::size_t>(number);
    const std::size_t begin = text + separator.size();
    lists[at].push_back(features > begin ? line.substr(begin, features - begin) : "");
  }
  if (lists.back().empty()) damaged(path, reader.lines() + 1, "more n-best lists");
  require_last_line(reader, path);
  return lists;
}

std::string format_selected(const SelectedLine& line) {
  return fmt::format("{:.6f}\t{}\n", line.backward, line.target);
}

std::vector<SelectedLine> read_selected(const std::string& path, std::size_t lines) {
  std::vector<SelectedLine> result;
  LineReader reader = LineReader::open(path);
  for (std::string line; reader.next(line);) {
    const std::size_t tab = line.find('\t');
    SelectedLine selected;
    const char* const end = line.data() + tab;
    if (tab == line.npos || result.size() == lines ||
        std::from_chars(line.data(), end, selected.backward).ptr != end)
      damaged(path, reader.lines(), "a score, a tab and a target");
    selected.target = line.substr(tab + 1);
    result.push_back(std::move(selected));
  }
  if (result.size() != lines) damaged(path, reader.lines() + 1, "more lines");
  require_last_line(reader, path);
  return result;
}

std::string read_links(const std::string& path, std::int64_t lines) {
  std::string links = read_file(path);
  const std::int64_t present = std::count(links.begin(), links.end(), '\n');
  if (present != lines || !links.ends_with('\n'))
    fail(ExitStatus::data, "{}: has {}{}, expected {}; {}", path, counted(present, "whole line"),
         links.empty() || links.ends_with('\n') ? "" : " and a part of one", grouped(lines),
         remedy);
  return links;
}

}  // namespace nmt::app
