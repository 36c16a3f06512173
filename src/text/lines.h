#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

// What a line is, in every program: only LF ends one; CR directly before that LF goes with it; a
// byte order mark at the very beginning of the text is dropped; the last line needs no LF.
// Everything else is data: lone CR, NUL, U+0085, U+2028. Invalid UTF-8 becomes U+FFFD.

/// What was unusual about lines, for one warning of each kind.
struct LineNotes {
  struct Note {
    std::int64_t lines = 0;  ///< how many lines
    std::int64_t first = 0;  ///< number of the first, from 1; 0: none
    void add(std::int64_t number) {
      if (lines++ == 0 || number < first) first = number;
    }
  };
  Note byte_order_mark, carriage_return, invalid_utf8, nul;

  /// Sentences for a user, "NAME: 3 lines with invalid UTF-8, the first is line 7; ..."; empty when
  /// nothing was unusual.
  std::vector<std::string> messages(std::string_view name) const;
  /// Logs each message as a warning.
  void warn(std::string_view name) const;
};

/// Cleans a line given without its LF; `number` counts from 1 and `ended` says whether an LF
/// followed. The result points into `raw`, or into `storage` when something had to be replaced.
std::string_view clean_line(std::string_view raw, bool ended, std::int64_t number,
                            std::string& storage, LineNotes* notes = nullptr);

/// All lines of a text in memory, cleaned.
std::vector<std::string> split_lines(std::string_view text, LineNotes* notes = nullptr);

/// Blank: nothing but ASCII white space.
bool is_blank(std::string_view line);

/// Lines of a file descriptor (file, pipe, terminal), each there as soon as its LF has arrived. Not
/// thread-safe.
class LineReader {
 public:
  /// Opens a file; "" and "-" are standard input. Errors (usage): not there, not readable, a
  /// folder.
  static LineReader open(const std::string& path);
  /// Reads `descriptor`, which stays the caller's; `name` is for messages.
  LineReader(int descriptor, std::string name);
  LineReader(LineReader&& other) noexcept;
  LineReader& operator=(LineReader&&) = delete;
  ~LineReader();

  /// The next line, cleaned; waits for it. False after the last. Errors (failed): the descriptor
  /// cannot be read.
  bool next(std::string& line);
  /// Whether next() would answer without waiting: a whole line, or the end, is there.
  bool available();
  /// Whether it is a regular file, which never keeps a reader waiting.
  bool is_regular_file() const;

  std::int64_t lines() const { return lines_; }  ///< handed out so far
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

}  // namespace nmt
