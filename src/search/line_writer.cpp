#include "search/line_writer.h"

namespace nmt {
namespace {
constexpr std::size_t buffer_size = std::size_t{1} << 16;
}

void LineWriter::write(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= buffer_size) flush();
}

void LineWriter::flush() {
  file_.write(buffer_);
  buffer_.clear();
}

void LineWriter::commit() {
  flush();
  file_.commit();
}

}  // namespace nmt
