#include "text/lines.h"

#include "core/error.h"
#include "core/log.h"
#include "text/utf8.h"

#include <algorithm>

#include <fmt/format.h>

namespace nmt {

namespace {

using namespace std::string_view_literals;

// None of them has an LF, so the first line has the whole mark. Except for bzip2, none begins valid
// UTF-8. The mark of UTF-32 begins with that of UTF-16.
struct Format {
  std::string_view mark, name, remedy;
};
constexpr std::string_view decompress = "decompress it first",
                           convert = "convert it to UTF-8, for example with iconv";
constexpr Format other_formats[] = {
    {"\x1F\x8B"sv, "gzip-compressed", decompress},
    {"\x28\xB5\x2F\xFD"sv, "zstd-compressed", decompress},
    {"\xFD\x37zXZ\0"sv, "xz-compressed", decompress},
    {"BZh"sv, "bzip2-compressed", decompress},
    {"\xFF\xFE\0\0"sv, "UTF-32", convert},
    {"\0\0\xFE\xFF"sv, "UTF-32", convert},
    {"\xFF\xFE"sv, "UTF-16", convert},
    {"\xFE\xFF"sv, "UTF-16", convert},
};

// Behind "BZh" are the block size and the digits of pi, or at the end of empty data of its root.
bool is_bzip2(std::string_view begin) {
  constexpr std::size_t size = 4;
  return begin.size() > size && begin[3] >= '1' && begin[3] <= '9' &&
         (begin.substr(size).starts_with("1AY&SY"sv) ||
          begin.substr(size).starts_with("\x17\x72\x45\x38\x50\x90"sv));
}

}  // namespace

void require_utf8(std::string_view begin, std::string_view name) {
  for (const Format& format : other_formats)
    if (begin.starts_with(format.mark) && (format.mark != "BZh" || is_bzip2(begin)))
      fail(ExitStatus::data, "{}: {}: {}", name, format.name, format.remedy);
}

void LineNotes::add(const LineNotes& later, std::int64_t before) {
  for (Note LineNotes::*const kind : {&LineNotes::byte_order_mark, &LineNotes::carriage_return,
                                      &LineNotes::invalid_utf8, &LineNotes::nul}) {
    Note& note = this->*kind;
    const Note& more = later.*kind;
    if (note.lines == 0 && more.lines > 0) note.first = before + more.first;
    note.lines += more.lines;
  }
}

std::vector<std::string> LineNotes::messages(std::string_view name) const {
  std::vector<std::string> all;
  const auto tell = [&](const Note& note, std::string_view what) {
    if (note.lines == 1) all.push_back(fmt::format("{}: line {} {}", name, note.first, what));
    if (note.lines > 1)
      all.push_back(
          fmt::format("{}: line {} and {} more {}", name, note.first, note.lines - 1, what));
  };
  tell(byte_order_mark, "started with a byte order mark; it was dropped");
  tell(carriage_return, "ended with CR LF; the CR was dropped");
  tell(invalid_utf8, "had invalid UTF-8; it was replaced by U+FFFD");
  tell(nul, "had NUL bytes; they were kept");
  return all;
}

void LineNotes::warn(std::string_view name) const {
  for (const std::string& message : messages(name)) log::warn("{}", message);
}

std::string_view clean_line(std::string_view raw, bool ended, std::int64_t number,
                            std::string& storage, LineNotes* notes) {
  LineNotes unread;
  LineNotes& noted = notes ? *notes : unread;
  if (number == 1 && raw.starts_with("\xEF\xBB\xBF")) {
    raw.remove_prefix(3);
    noted.byte_order_mark.add(number);
  }
  if (ended && raw.ends_with('\r')) {
    raw.remove_suffix(1);
    noted.carriage_return.add(number);
  }
  if (raw.find('\0') != std::string_view::npos) noted.nul.add(number);
  if (is_valid_utf8(raw)) return raw;
  noted.invalid_utf8.add(number);
  repair_utf8(raw, storage);
  return storage;
}

std::vector<std::string> split_lines(std::string_view text, LineNotes* notes) {
  std::vector<std::string> lines;
  std::string storage;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const bool ended = end != std::string_view::npos;
    lines.emplace_back(clean_line(text.substr(0, end), ended,
                                  static_cast<std::int64_t>(lines.size()) + 1, storage, notes));
    text.remove_prefix(ended ? end + 1 : text.size());
  }
  return lines;
}

namespace {
constexpr std::string_view white_space = " \t\r\n\v\f";
}  // namespace

bool is_blank(std::string_view line) {
  return line.find_first_not_of(white_space) == std::string_view::npos;
}

WordCount count_words(std::string_view line, std::size_t limit) {
  WordCount words{.kept_bytes = line.size()};
  for (std::size_t begin = 0, end = 0;; begin = end) {
    begin = line.find_first_not_of(white_space, begin);
    if (begin == std::string_view::npos) return words;
    end = std::min(line.find_first_of(white_space, begin), line.size());
    if (++words.count == limit) words.kept_bytes = end;
  }
}

}  // namespace nmt
