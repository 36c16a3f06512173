#include "app/files/line_input.h"

#include "core/error.h"

#include <algorithm>

namespace nmt::app {

void expect_one_standard_input(const std::vector<std::string>& files) {
  if (std::count(files.begin(), files.end(), "-") > 1)
    fail(ExitStatus::usage, "-: standard input is given twice; name a file for one of them");
}

LineInput::LineInput(const std::string& path, const std::vector<std::string>& texts) {
  if (texts.empty()) {
    reader_.emplace(LineReader::open(path));
    return;
  }
  if (!path.empty()) fail(ExitStatus::usage, "input '{}' and text exclude each other", path);
  for (const std::string& text : texts) {
    LineNotes notes;
    std::vector<std::string> lines = split_lines(text, &notes);
    if (lines.empty()) lines.emplace_back();
    notes_.add(notes, std::ssize(given_));
    given_.insert(given_.end(), lines.begin(), lines.end());
  }
}

bool LineInput::next(std::string& line) {
  if (reader_ ? !reader_->next(line) : lines_ == std::ssize(given_)) return false;
  if (!reader_) line = given_[static_cast<std::size_t>(lines_)];
  ++lines_;
  bytes_ += std::ssize(line) + 1;
  return true;
}

void LineInput::warn() const {
  if (reader_)
    reader_->notes().warn(reader_->name());
  else
    notes_.warn("text");
}

}  // namespace nmt::app
