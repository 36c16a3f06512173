#pragma once

#include "search/batch_translator.h"
#include "search/line_writer.h"
#include "text/lines.h"

#include <cstdint>
#include <string>

namespace nmt {

/// Lines to translate, one after the other.
class LineSource {
 public:
  virtual ~LineSource() = default;
  /// The next line, valid UTF-8 without its end; waits for it. False after the last one.
  virtual bool next(std::string& line) = 0;
  /// Whether next() would answer without waiting: a whole line, or the end, is there.
  virtual bool ready() = 0;
};

/// The lines of a reader; what has been read of them in bytes, for progress.
class ReaderLines : public LineSource {
 public:
  /// The reader outlives it.
  explicit ReaderLines(LineReader& reader) : reader_(reader) {}
  bool next(std::string& line) override {
    if (!reader_.next(line)) return false;
    bytes_ += static_cast<std::int64_t>(line.size()) + 1;
    ++lines_;
    return true;
  }
  bool ready() override { return reader_.available(); }
  std::int64_t bytes() const { return bytes_; }
  std::int64_t lines() const { return lines_; }

 private:
  LineReader& reader_;
  std::int64_t bytes_ = 0, lines_ = 0;
};

/// Translates line by line until the source ends, and writes the results in order. At most a window
/// of lines is held at a time. `responsive` is for pipes and terminals: what has arrived is
/// translated and flushed before more is waited for. Returns the number of lines; as many have been
/// answered (else: error, failed). Does not commit the writer.
std::int64_t translate_stream(BatchTranslator& translator, LineSource& source, LineWriter& writer,
                              bool responsive);

}  // namespace nmt
