#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

// Definition of a line, for all programs. Only LF ends a line. A CR directly before the LF is
// dropped, and so is a byte order mark at the start of the text. The last line needs no LF. All
// other control characters are data: lone CR, NUL, U+0085, U+2028. Invalid UTF-8 is replaced by
// U+FFFD.

/// Error (data): a text that begins so is compressed, or UTF-16 or UTF-32. `begin` is the text or
/// its first line, `name` is for the message.
void require_utf8(std::string_view begin, std::string_view name);

/// Counts irregularities of lines, to warn once per kind.
struct LineNotes {
  struct Note {
    std::int64_t lines = 0;  ///< number of lines
    std::int64_t first = 0;  ///< number of the first line, from 1; 0: none
    void add(std::int64_t number) {
      if (lines++ == 0 || number < first) first = number;
    }
  };
  Note byte_order_mark, carriage_return, invalid_utf8, nul;

  /// Adds the notes on a text that follows on `before` lines.
  void add(const LineNotes& later, std::int64_t before);

  /// One message per kind, for example "NAME: line 7 and 2 more had invalid UTF-8, ..."; empty when
  /// there was no irregularity.
  std::vector<std::string> messages(std::string_view name) const;
  /// Logs each message as a warning.
  void warn(std::string_view name) const;
};

/// Cleans a line, given without its LF. `number` counts from 1; `ended` says whether an LF
/// followed. The result points into `raw`, or into `storage` if the line had to be changed.
std::string_view clean_line(std::string_view raw, bool ended, std::int64_t number,
                            std::string& storage, LineNotes* notes = nullptr);

/// Splits a text into cleaned lines.
std::vector<std::string> split_lines(std::string_view text, LineNotes* notes = nullptr);

/// Whether the line is empty or ASCII white space.
bool is_blank(std::string_view line);

/// The words of a line, which ASCII white space separates.
struct WordCount {
  std::size_t count = 0;
  std::size_t kept_bytes = 0;  ///< where word number `limit` ends; the size of a shorter line
};
WordCount count_words(std::string_view line, std::size_t limit);

/// Reads lines from a file descriptor (file, pipe, terminal). A line is available as soon as its LF
/// has arrived. Not thread-safe.
class LineReader {
 public:
  /// Opens a file; "" and "-" mean standard input. Errors (usage): missing, unreadable, a
  /// directory.
  static LineReader open(const std::string& path);
  /// Reads `descriptor`, which the caller owns; `name` is for error messages.
  LineReader(int descriptor, std::string name);
  LineReader(LineReader&& other) noexcept;
  LineReader& operator=(LineReader&&) = delete;
  ~LineReader();

  /// Reads the next line, cleaned; blocks until it has arrived. Returns false at the end. Errors:
  /// (failed) the descriptor cannot be read; (data) as require_utf8.
  bool next(std::string& line);
  /// Whether next() would return without blocking.
  bool available();
  /// Whether the input is a regular file, on which reads do not block.
  bool is_regular_file() const;

  std::int64_t lines() const { return lines_; }  ///< number of lines returned so far
  const LineNotes& notes() const { return notes_; }
  const std::string& name() const { return name_; }

 private:
  void read_more();
  bool find_end();
  int descriptor_;
  bool owned_ = false, ended_ = false;
  std::string name_, buffer_, storage_;
  std::size_t begin_ = 0, scanned_ = 0;  // of the next line in buffer_; no LF in [begin_, scanned_)
  std::int64_t lines_ = 0;
  LineNotes notes_;
};

/// All lines of a file, cleaned; warns of what was changed. Errors: as LineReader::open and
/// LineReader::next.
std::vector<std::string> read_lines(const std::string& path);

}  // namespace nmt
