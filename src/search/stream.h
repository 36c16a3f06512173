#pragma once

#include "search/batch_translator.h"
#include "search/line_writer.h"
#include "text/lines.h"

#include <cstdint>
#include <string>

namespace nmt {

/// A source of lines to translate.
class LineSource {
 public:
  virtual ~LineSource() = default;
  /// Reads the next line, valid UTF-8 without LF; blocks until it has arrived. Returns false at the
  /// end.
  virtual bool next(std::string& line) = 0;
  /// Whether next() would return without blocking.
  virtual bool ready() = 0;
};

/// The lines of a LineReader; counts lines and bytes for progress output.
class ReaderLines : public LineSource {
 public:
  /// The reader must outlive this object.
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

/// Translates until the source ends, and writes the results in order. The source begins a document
/// (text/document_context.h). Holds at most one window of lines. `responsive` is for pipes and
/// terminals: all lines that have arrived are translated and flushed before it waits for more.
/// Returns the number of lines. Error (failed): the number of translations differs. Does not commit
/// the writer.
std::int64_t translate_stream(LineTranslator& translator, LineSource& source, LineWriter& writer,
                              bool responsive);

}  // namespace nmt
