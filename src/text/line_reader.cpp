#include "core/error.h"
#include "text/lines.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace nmt {

namespace {

constexpr std::size_t kChunk = std::size_t{1} << 16;

/// Waits up to `milliseconds` (-1: indefinitely) until a read would not block.
bool readable(int descriptor, int milliseconds) {
  pollfd request{descriptor, POLLIN, 0};
  for (;;) {
    const int answer = ::poll(&request, 1, milliseconds);
    if (answer >= 0) return answer > 0;
    if (errno != EINTR) return true;  // the following read reports the error
  }
}

}  // namespace

LineReader LineReader::open(const std::string& path) {
  if (path.empty() || path == "-") return LineReader(STDIN_FILENO, "standard input");
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    fail(ExitStatus::usage, "{}: cannot be opened: {}", path, std::strerror(errno));
  LineReader reader(descriptor, path);
  reader.owned_ = true;
  struct stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    fail(ExitStatus::usage, "{}: is a directory; expected a text file", path);
  }
  return reader;
}

LineReader::LineReader(int descriptor, std::string name)
    : descriptor_(descriptor), name_(std::move(name)) {}

LineReader::LineReader(LineReader&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      owned_(std::exchange(other.owned_, false)),
      ended_(other.ended_),
      name_(std::move(other.name_)),
      buffer_(std::move(other.buffer_)),
      storage_(std::move(other.storage_)),
      begin_(other.begin_),
      scanned_(other.scanned_),
      lines_(other.lines_),
      notes_(other.notes_) {}

LineReader::~LineReader() {
  if (owned_) ::close(descriptor_);
}

bool LineReader::is_regular_file() const {
  struct stat status {};
  return ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
}

/// Moves scanned_ to the next LF, or to the end of the buffer.
bool LineReader::find_end() {
  const std::size_t at = buffer_.find('\n', scanned_);
  scanned_ = at == std::string::npos ? buffer_.size() : at;
  return at != std::string::npos;
}

/// Appends the result of one read to the buffer.
void LineReader::read_more() {
  if (begin_ > 0 &&
      begin_ >= buffer_.size() / 2) {  // so that erasing costs amortized constant time per byte
    buffer_.erase(0, begin_);
    scanned_ -= begin_;
    begin_ = 0;
  }
  char chunk[kChunk];
  for (;;) {
    const ssize_t got = ::read(descriptor_, chunk, sizeof chunk);
    if (got > 0) buffer_.append(chunk, static_cast<std::size_t>(got));
    if (got == 0) ended_ = true;
    if (got >= 0) return;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      readable(descriptor_, -1);
    } else if (errno != EINTR) {
      fail(ExitStatus::failed, "{}: cannot be read after line {}: {}", name_, lines_,
           std::strerror(errno));
    }
  }
}

bool LineReader::available() {
  while (!find_end() && !ended_) {
    if (!readable(descriptor_, 0)) return false;
    read_more();
  }
  return true;
}

bool LineReader::next(std::string& line) {
  bool found = find_end();
  while (!found && !ended_) {
    read_more();
    found = find_end();
  }
  if (!found && begin_ == buffer_.size()) return false;
  ++lines_;
  const std::string_view raw = std::string_view(buffer_).substr(begin_, scanned_ - begin_);
  if (lines_ == 1) require_utf8(raw, name_);
  line = clean_line(raw, found, lines_, storage_, &notes_);
  begin_ = scanned_ = found ? scanned_ + 1 : buffer_.size();
  return true;
}

std::vector<std::string> read_lines(const std::string& path) {
  LineReader reader = LineReader::open(path);
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);) lines.push_back(line);
  reader.notes().warn(path);
  return lines;
}

}  // namespace nmt
