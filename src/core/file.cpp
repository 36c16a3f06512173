#include "core/file.h"

#include "core/error.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace nmt {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view aside_prefix = ".tmp-";

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

/// A name beside `path` that nobody else has, under which it is written: in the same folder, so
/// that a rename is one step.
std::string aside_of(const std::string& path) {
  static std::atomic<int> made{0};
  fs::path whole(path);
  if (!whole.has_filename()) whole = whole.parent_path();
  return (folder_of(whole) / fmt::format("{}{}-{}-{}", aside_prefix,
                                         whole.filename().string().substr(0, 200), ::getpid(),
                                         made++))
      .string();
}

/// What is there and no regular file, devices and pipes, is written in its place; so are open files
/// by the names the system gives them
/// (/dev/stdout, /dev/fd/3).
bool is_written_in_place(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status)) return true;
  struct statfs system {};
  return ::statfs(folder_of(path).c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

/// The file that a name stands for: links stay, what they lead to is replaced, also where that is
/// not there yet.
fs::path behind_links(fs::path path) {
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(path, error)) && !is_written_in_place(path);
       ++links) {
    if (links == 40)
      fail(ExitStatus::usage, "{}: cannot be written: {}", path.string(), std::strerror(ELOOP));
    path = folder_of(path) / fs::read_symlink(path);  // an absolute target stands for itself
  }
  return path;
}

[[noreturn]] void fail_with_errno(const std::string& path, const char* action) {
  const int reason = errno;
  fail(ExitStatus::failed, "{}: cannot {}: {}", path, action, std::strerror(reason));
}

void sync_file(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number < 0 || ::fsync(file.number) != 0)
    fail_with_errno(path.string(), "write to the disk");
}

}  // namespace

std::string read_file(const std::string& path, std::int64_t most) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (file.number < 0 || ::fstat(file.number, &status) != 0)
    fail(ExitStatus::usage, "{}: cannot be read: {}", path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) fail(ExitStatus::usage, "{}: is a folder, not a file", path);
  std::string contents;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(file.number, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ExitStatus::usage, "{}: cannot be read: {}", path, std::strerror(errno));
    if (n == 0) return contents;
    contents.append(buffer, static_cast<std::size_t>(n));
    if (static_cast<std::int64_t>(contents.size()) > most)
      fail(ExitStatus::data, "{}: is larger than {} bytes", path, most);
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
    fail(ExitStatus::usage, "{}: is a folder, a file is needed", path);
  target_ = behind_links(path).string();
  if (is_written_in_place(target_)) {
    descriptor_ = ::open(target_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  } else {
    do {  // past what a killed process of the same number has left
      aside_ = aside_of(target_);
      descriptor_ = ::open(aside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (descriptor_ < 0 && errno == EEXIST);
  }
  if (descriptor_ < 0) {
    const int reason = errno;
    aside_.clear();
    const bool is_full = reason == ENOSPC || reason == EDQUOT || reason == EIO;
    fail(is_full ? ExitStatus::failed : ExitStatus::usage, "{}: cannot be written: {}", path,
         std::strerror(reason));
  }
  if (aside_.empty()) return;
  const std::string folder = folder_of(target_).string();
  if (const std::int64_t room = free_bytes(folder); room < expected) {
    give_up();
    fail(ExitStatus::failed, "{}: no room: {} bytes needed, {} free in {}", path, expected, room,
         folder);
  }
}

AtomicFile::~AtomicFile() {
  give_up();
}

void AtomicFile::give_up() {
  if (descriptor_ >= 0 && descriptor_ != STDOUT_FILENO) ::close(descriptor_);
  if (!aside_.empty()) ::unlink(aside_.c_str());
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  const char* from = static_cast<const char*>(data);
  written_ += static_cast<std::int64_t>(bytes);
  while (bytes > 0) {
    const ssize_t n = ::write(descriptor_, from, bytes);
    if (n < 0 && errno == EINTR) continue;
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
  if (!aside_.empty() && ::fsync(descriptor_) != 0)
    fail_with_errno(name_, "be written to the disk");
  if (::close(std::exchange(descriptor_, -1)) != 0) fail_with_errno(name_, "be written");
  if (aside_.empty()) return;
  if (::rename(aside_.c_str(), target_.c_str()) != 0) fail_with_errno(name_, "be written");
  aside_.clear();
  sync_directory(folder_of(target_).string());
}

void write_file(const std::string& path, std::string_view contents) {
  AtomicFile file(path, static_cast<std::int64_t>(contents.size()));
  file.write(contents);
  file.commit();
}

void write_directory(const std::string& path, const std::function<void(const std::string&)>& fill) {
  struct Aside {
    std::string name;
    ~Aside() {
      std::error_code ignored;
      if (!name.empty()) fs::remove_all(name, ignored);
    }
  } aside{aside_of(path)};
  std::error_code error;
  fs::remove_all(aside.name, error);
  if (::mkdir(aside.name.c_str(), 0777) != 0) fail_with_errno(path, "be made");
  fill(aside.name);
  for (const auto& entry : fs::directory_iterator(aside.name)) sync_file(entry.path());
  sync_directory(aside.name);
  // rename() replaces an empty folder; whatever else is there makes it fail.
  if (::rename(aside.name.c_str(), path.c_str()) != 0) fail_with_errno(path, "be made");
  aside.name.clear();
  sync_directory(folder_of(path).string());
}

void make_directories(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error || !fs::is_directory(path, error))
    fail(ExitStatus::failed, "{}: the folder cannot be made: {}", path,
         error ? error.message() : "a file has that name");
}

bool is_aside(std::string_view file_name) {
  return file_name.starts_with(aside_prefix);
}

void remove_asides(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error))
    if (is_aside(entry.path().filename().string())) fs::remove_all(entry.path(), error);
}

void sync_directory(const std::string& path) {
  const Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync folders: they say EINVAL, and order names themselves.
  if (directory.number < 0 || (::fsync(directory.number) != 0 && errno != EINVAL))
    fail_with_errno(path, "write the folder to the disk");
}

std::int64_t free_bytes(const std::string& directory) {
  struct statvfs info {};
  if (::statvfs(directory.c_str(), &info) != 0)
    fail(ExitStatus::failed, "{}: {}", directory, std::strerror(errno));
  return static_cast<std::int64_t>(info.f_bavail) * static_cast<std::int64_t>(info.f_frsize);
}

}  // namespace nmt
