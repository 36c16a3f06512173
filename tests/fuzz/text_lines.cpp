#include "tests/fuzz/target.h"
#include "text/lines.h"
#include "text/utf8.h"

#include <algorithm>
#include <stdexcept>

#include <sys/mman.h>
#include <unistd.h>

namespace {
void must(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}
}  // namespace

// Any bytes are valid input: one line per LF, plus one for trailing text; all lines are valid
// UTF-8. Streams refuse what begins as compressed text or UTF-16 does.
void nmt::fuzz::text_lines(std::string_view bytes) {
  LineNotes notes;
  const std::vector<std::string> lines = split_lines(bytes, &notes);
  const auto ends = static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), '\n'));
  must(lines.size() == ends + (!bytes.empty() && bytes.back() != '\n'), "wrong number of lines");
  for (const std::string& line : lines) {
    must(line.find('\n') == std::string::npos, "an LF within a line");
    must(is_valid_utf8(line), "a line is not valid UTF-8");
  }
  std::string repaired;
  const std::size_t replaced = repair_utf8(bytes, repaired);
  must((replaced == 0) == (repaired == bytes), "wrong number of replacements");
  must((replaced == 0) == is_valid_utf8(bytes), "is_valid_utf8 and repair_utf8 differ");
  must(is_valid_utf8(repaired), "a repaired text is not valid UTF-8");
  must((notes.invalid_utf8.lines == 0) == (replaced == 0), "notes and repair_utf8 differ");

  static const int file = ::memfd_create("fuzz", MFD_CLOEXEC);
  must(::ftruncate(file, 0) == 0 &&
           ::pwrite(file, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
       "cannot create a file in memory");
  ::lseek(file, 0, SEEK_SET);
  LineReader reader(file, "fuzz");
  std::string line;
  bool is_text = false, is_read = false;
  read([&] {
    require_utf8(bytes, "fuzz");
    is_text = true;
  });
  must(is_text || replaced > 0 || bytes.starts_with("BZh"), "valid UTF-8 is taken for no text");
  if (!is_text) {
    read([&] {
      reader.next(line);
      is_read = true;
    });
    return must(!is_read, "the stream reads what is no text");
  }
  for (const std::string& expected : lines)
    must(reader.next(line) && line == expected, "the stream has different lines");
  must(!reader.next(line), "the stream has additional lines");
  must(reader.notes().messages("x") == notes.messages("x"), "the stream has different notes");
}

NMT_FUZZ_TARGET(text_lines)
