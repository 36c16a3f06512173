#include "nmt/search/descriptor_lines.h"

#include "nmt/core/error.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace nmt {
namespace {
constexpr std::size_t portion = std::size_t{1} << 16;
}

DescriptorLines::DescriptorLines(const std::string& path) : name_(path), descriptor_(STDIN_FILENO) {
  if (path.empty() || path == "-") {
    name_ = "standard input";
  } else {
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail(ExitStatus::usage, "{}: cannot be read: {}", name_, std::strerror(errno));
  }
  struct stat status {};
  const bool known = ::fstat(descriptor_, &status) == 0;
  const int error = errno;
  if (!known || S_ISDIR(status.st_mode)) {
    if (descriptor_ != STDIN_FILENO) ::close(descriptor_);
    fail(ExitStatus::usage, "{}: cannot be read: {}", name_, std::strerror(known ? EISDIR : error));
  }
  regular_ = S_ISREG(status.st_mode);
  if (regular_) size_ = status.st_size;
}

DescriptorLines::~DescriptorLines() {
  if (descriptor_ != STDIN_FILENO) ::close(descriptor_);
}

bool DescriptorLines::fill() {
  if (at_end_) return false;
  if (begin_ > 0) {
    buffer_.erase(0, begin_);
    searched_ -= begin_;
    begin_ = 0;
  }
  const std::size_t used = buffer_.size();
  buffer_.resize(used + portion);
  ssize_t n;
  do n = ::read(descriptor_, buffer_.data() + used, portion);
  while (n < 0 && errno == EINTR);
  const int error = errno;
  buffer_.resize(used + static_cast<std::size_t>(n > 0 ? n : 0));
  if (n < 0) NMT_FAIL("{}: cannot be read: {}", name_, std::strerror(error));
  at_end_ = n == 0;
  return !at_end_;
}

bool DescriptorLines::next(std::string& line) {
  for (;;) {
    const std::size_t end = buffer_.find('\n', searched_);
    if (end != std::string::npos) {
      line.assign(buffer_, begin_, end - begin_);
      position_ += static_cast<std::int64_t>(end + 1 - begin_);
      begin_ = searched_ = end + 1;
      return true;
    }
    searched_ = buffer_.size();
    if (fill()) continue;
    if (begin_ == buffer_.size()) return false;
    line.assign(buffer_, begin_);
    position_ += static_cast<std::int64_t>(line.size());
    begin_ = searched_ = buffer_.size();
    return true;
  }
}

bool DescriptorLines::ready() {
  for (;;) {
    const std::size_t end = buffer_.find('\n', searched_);
    if (end != std::string::npos) {
      searched_ = end;
      return true;
    }
    searched_ = buffer_.size();
    if (at_end_) return true;
    struct pollfd waiting {
      descriptor_, POLLIN, 0
    };
    if (::poll(&waiting, 1, 0) <= 0) return false;
    if (!fill()) return true;
  }
}

}  // namespace nmt
