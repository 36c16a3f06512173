#include "nmt/search/line_writer.h"

#include "nmt/core/error.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace nmt {
namespace {
constexpr std::size_t buffer_size = std::size_t{1} << 16;
}

LineWriter::LineWriter(const std::string& path) : name_(path), descriptor_(STDOUT_FILENO) {
  if (path.empty() || path == "-") {
    name_ = "standard output";
    return;
  }
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::is_directory(status))
    fail(ExitStatus::usage, "{}: is a directory, an output file is needed", path);
  if (!std::filesystem::exists(status) || std::filesystem::is_regular_file(status)) {
    if (std::filesystem::is_symlink(std::filesystem::symlink_status(path, ignored)))
      name_ = std::filesystem::weakly_canonical(path, ignored).string();  // the link stays, its target is replaced
    aside_ = name_ + ".part";
  }
  const std::string& file = aside_.empty() ? name_ : aside_;
  descriptor_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    aside_.clear();
    fail(ExitStatus::usage, "{}: cannot be written: {}", path, std::strerror(errno));
  }
}

LineWriter::~LineWriter() {
  if (descriptor_ != STDOUT_FILENO) ::close(descriptor_);
  if (!aside_.empty()) ::unlink(aside_.c_str());
}

void LineWriter::fail_with_errno(const char* what) const {
  NMT_FAIL("{}: {}: {}", name_, what, std::strerror(errno));
}

void LineWriter::write(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= buffer_size) flush();
}

void LineWriter::flush() {
  for (std::size_t done = 0; done < buffer_.size();) {
    const ssize_t n = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_with_errno("cannot write");
    done += static_cast<std::size_t>(n);
  }
  buffer_.clear();
}

void LineWriter::commit() {
  flush();
  if (aside_.empty()) return;
  if (::fsync(descriptor_) != 0) fail_with_errno("cannot write");
  if (std::rename(aside_.c_str(), name_.c_str()) != 0) fail_with_errno("cannot take its name");
  aside_.clear();
}

}  // namespace nmt
