#include "core/files/file.h"

#include "core/error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace nmt {
namespace {

namespace fs = std::filesystem;

struct Descriptor {
  explicit Descriptor(int number_) : number(number_) {}
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number;
};

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// Existing devices and pipes are written in place, and so are open files under their /proc names
/// (/dev/stdout, /dev/fd/3).
bool is_written_in_place(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status)) return true;
  struct statfs system {};
  return ::statfs(folder_of(path).c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

/// Resolves symbolic links, dangling ones too: the links stay and their target is replaced.
fs::path behind_links(fs::path path) {
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(path, error)) && !is_written_in_place(path);
       ++links) {
    if (links == 40)
      fail(ExitStatus::usage, "{}: cannot be written: {}", path.string(), std::strerror(ELOOP));
    path = folder_of(path) / fs::read_symlink(path);  // operator/ keeps an absolute target
  }
  return path;
}

/// Why rename() will not replace the target, as far as that is known before; "" if nothing is.
std::string refusal_of(const std::string& target) {
  struct statx info {};
  if (::statx(AT_FDCWD, target.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &info) != 0)
    return errno == ENAMETOOLONG ? std::strerror(errno) : "";
  if (info.stx_attributes & STATX_ATTR_MOUNT_ROOT)
    return "it is a mount point, which no file can replace; give a path in a mounted directory";
  return ::access(target.c_str(), W_OK) != 0 ? std::strerror(errno) : "";
}

[[noreturn]] void fail_with_errno(const std::string& path, const char* action) {
  const int reason = errno;
  fail(ExitStatus::failed, "{}: cannot {}: {}", path, action, std::strerror(reason));
}

void sync_file(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number < 0 || ::fsync(file.number) != 0)
    fail_with_errno(path.string(), "be synced to disk");
}

}  // namespace

std::string read_file(const std::string& path, std::int64_t max_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (file.number < 0 || ::fstat(file.number, &status) != 0)
    fail(ExitStatus::usage, "{}: cannot be read: {}", path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) fail(ExitStatus::usage, "{}: is a directory; expected a file", path);
  std::string contents;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(file.number, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ExitStatus::usage, "{}: cannot be read: {}", path, std::strerror(errno));
    if (n == 0) return contents;
    contents.append(buffer, static_cast<std::size_t>(n));
    if (static_cast<std::int64_t>(contents.size()) > max_bytes)
      fail(ExitStatus::data, "{}: is larger than {} bytes", path, max_bytes);
  }
}

AtomicFile::AtomicFile(const std::string& path, std::int64_t expected)
    : name_(path), expected_(expected) {
  if (path.empty() || path == "-") {
    name_ = "standard output";
    descriptor_ = STDOUT_FILENO;
    return;
  }
  std::error_code ignored;
  if (path.back() == '/' || fs::is_directory(path, ignored))
    fail(ExitStatus::usage, "{}: is a directory; expected a file", path);
  target_ = behind_links(path).string();
  if (is_written_in_place(target_)) {
    descriptor_ = ::open(target_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  } else {
    if (const std::string why = refusal_of(target_); !why.empty())
      fail(ExitStatus::usage, "{}: cannot be written: {}", path, why);
    descriptor_ = temporary_.make_file(target_);
    // A private file stays private.
    struct stat before {};
    if (descriptor_ >= 0 && ::stat(target_.c_str(), &before) == 0)
      ::fchmod(descriptor_, before.st_mode & 07777);
  }
  if (descriptor_ < 0) {
    const int reason = errno;
    const bool is_full = reason == ENOSPC || reason == EDQUOT || reason == EIO;
    fail(is_full ? ExitStatus::failed : ExitStatus::usage, "{}: cannot be written: {}", path,
         std::strerror(reason));
  }
  if (temporary_.name().empty()) return;
  const std::string folder = folder_of(target_).string();
  if (const std::int64_t room = free_bytes(folder); room < expected) {
    ::close(descriptor_);
    fail(ExitStatus::failed, "{}: not enough disk space: {} bytes needed, {} free in {}", path,
         expected, room, folder);
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0 && descriptor_ != STDOUT_FILENO) ::close(descriptor_);
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  const char* from = static_cast<const char*>(data);
  written_ += static_cast<std::int64_t>(bytes);
  while (bytes > 0) {
    const ssize_t n = ::write(descriptor_, from, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {  // a full pipe that does not block
      pollfd full{descriptor_, POLLOUT, 0};
      ::poll(&full, 1, -1);
      continue;
    }
    if (n <= 0) {
      const int reason = errno;
      const std::string needed =
          expected_ > 0 ? fmt::format(", {} bytes needed", std::max(expected_, written_)) : "";
      fail(ExitStatus::failed, "{}: cannot be written{}: {}", name_, needed, std::strerror(reason));
    }
    from += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

void AtomicFile::commit() {
  if (descriptor_ == STDOUT_FILENO) return;
  const bool is_temporary = !temporary_.name().empty();
  if (is_temporary && ::fsync(descriptor_) != 0) fail_with_errno(name_, "be synced to disk");
  if (::close(std::exchange(descriptor_, -1)) != 0) fail_with_errno(name_, "be written");
  if (!is_temporary) return;
  if (!temporary_.publish(target_)) {
    const int reason = errno;
    fail(ExitStatus::failed, "{}: cannot be written: {}; the output is in {}", name_,
         std::strerror(reason), temporary_.keep());
  }
  sync_directory(folder_of(target_).string());
}

void write_file(const std::string& path, std::string_view contents) {
  AtomicFile file(path, static_cast<std::int64_t>(contents.size()));
  file.write(contents);
  file.commit();
}

void write_directory(const std::string& path, const std::function<void(const std::string&)>& fill) {
  Temporary temporary;
  if (!temporary.make_directory(path)) fail_with_errno(path, "be made");
  fill(temporary.name());
  for (const auto& entry : fs::directory_iterator(temporary.name()))
    if (entry.is_directory())
      sync_directory(entry.path().string());
    else
      sync_file(entry.path());
  sync_directory(temporary.name());
  // rename() replaces an empty directory and fails on anything else.
  if (!temporary.publish(path)) fail_with_errno(path, "be made");
  const fs::path made(path);  // may end in "/"
  sync_directory(folder_of(made.has_filename() ? made : made.parent_path()).string());
}

std::string directory_name(const std::string& directory) {
  fs::path path = fs::weakly_canonical(directory);
  if (path.filename().empty()) path = path.parent_path();  // "model/"
  return path.filename().string();
}

bool is_directory(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

void make_directories(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error && fs::is_directory(path, error)) return;
  const bool is_full = error == std::errc::no_space_on_device || error == std::errc::io_error;
  fail(is_full ? ExitStatus::failed : ExitStatus::usage, "{}: cannot create directory: {}", path,
       error ? error.message() : "a file with this name exists");
}

void sync_directory(const std::string& path) {
  const Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync directories (EINVAL); those order directory entries themselves. A
  // directory that can be written but not read cannot be opened.
  const bool is_synced =
      directory.number < 0 ? errno == EACCES : ::fsync(directory.number) == 0 || errno == EINVAL;
  if (!is_synced) fail_with_errno(path, "sync the directory");
}

std::optional<FileIdentity> identity_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return FileIdentity{info.st_dev, info.st_ino};
}

std::int64_t free_bytes(const std::string& directory) {
  struct statvfs info {};
  if (::statvfs(directory.c_str(), &info) != 0)
    fail(ExitStatus::failed, "{}: {}", directory, std::strerror(errno));
  // Some network file systems report no size at all, or one without a limit.
  std::int64_t bytes = 0;
  const bool is_known =
      info.f_blocks > 0 && !__builtin_mul_overflow(info.f_bavail, info.f_frsize, &bytes);
  return is_known ? bytes : std::numeric_limits<std::int64_t>::max();
}

}  // namespace nmt
