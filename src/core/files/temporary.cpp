#include "core/files/temporary.h"

#include "core/threads/blocked_signals.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace nmt {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = ".tmp-";

constinit std::atomic<bool> is_locked{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may not lock");
constinit Temporary* newest = nullptr;

void lock() noexcept {
  while (is_locked.exchange(true, std::memory_order_acquire)) ::poll(nullptr, 0, 1);
}

/// While it exists, the list of temporaries matches the file system, and this thread handles no
/// signal. A handler can therefore wait for the lock on any thread.
class Section {
 public:
  Section() { lock(); }
  ~Section() { is_locked.store(false, std::memory_order_release); }

 private:
  BlockedSignals blocked_;
};

/// A unique name in the same directory as `path`.
std::string temporary_name(const std::string& path) {
  static std::atomic<int> made{0};
  fs::path whole(path);
  if (!whole.has_filename()) whole = whole.parent_path();
  const fs::path folder = whole.has_parent_path() ? whole.parent_path() : fs::path(".");
  return (folder / fmt::format("{}{}-{}-{}", prefix, whole.filename().string().substr(0, 200),
                               ::getpid(), made++))
      .string();
}

/// Removes a file, or a directory with its contents, by system calls alone: opendir() and readdir()
/// may allocate.
void remove_tree(int folder, const char* name) noexcept {
  if (::unlinkat(folder, name, 0) == 0 || errno != EISDIR) return;
  struct Entry {  // of getdents64(2)
    std::uint64_t inode;
    std::int64_t offset;
    unsigned short bytes;
    unsigned char type;
    char name[1];
  };
  const int directory = ::openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (directory < 0) return;
  // Another thread may still be writing to it, until it needs the lock.
  for (int tries = 0; tries < 100; ++tries) {
    ::lseek(directory, 0, SEEK_SET);
    alignas(Entry) char buffer[2048];
    long bytes = 0;
    while ((bytes = ::syscall(SYS_getdents64, directory, buffer, sizeof buffer)) > 0) {
      for (long at = 0; at < bytes;) {
        const char* entry = buffer + at;
        const char* child = entry + offsetof(Entry, name);
        if (std::strcmp(child, ".") != 0 && std::strcmp(child, "..") != 0)
          remove_tree(directory, child);
        unsigned short length = 0;
        std::memcpy(&length, entry + offsetof(Entry, bytes), sizeof length);
        at += length;
      }
    }
    if (::unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno != ENOTEMPTY) break;
    ::poll(nullptr, 0, 1);
  }
  ::close(directory);
}

void end_by(int signal) {
  remove_own_temporaries();
  // The parent sees the signal, as without a handler. It is blocked until the handler returns.
  ::signal(signal, SIG_DFL);
  ::raise(signal);
  sigset_t unblocked;
  ::sigemptyset(&unblocked);
  ::sigaddset(&unblocked, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &unblocked, nullptr);
  ::_exit(128 + signal);  // process 1 of a container is not ended by the signal
}

}  // namespace

int Temporary::make_file(const std::string& target) {
  const Section section;
  int descriptor = -1;
  do {  // skip temporaries of a killed process with the same PID
    name_ = temporary_name(target);
    descriptor = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EEXIST);
  const int reason = errno;
  if (descriptor < 0)
    name_.clear();
  else
    link();
  errno = reason;
  return descriptor;
}

bool Temporary::make_directory(const std::string& target) {
  const Section section;
  int failed = 0;
  do {
    name_ = temporary_name(target);
    failed = ::mkdir(name_.c_str(), 0777);
  } while (failed && errno == EEXIST);
  const int reason = errno;
  if (failed)
    name_.clear();
  else
    link();
  errno = reason;
  return !failed;
}

bool Temporary::publish(const std::string& path) {
  const Section section;
  if (::rename(name_.c_str(), path.c_str()) != 0) return false;
  forget();
  return true;
}

void Temporary::discard() {
  if (name_.empty()) return;
  std::error_code ignored;
  fs::remove_all(name_, ignored);
  const Section section;
  forget();
}

std::string Temporary::keep() {
  const Section section;
  std::string name = name_;
  forget();
  return name;
}

void Temporary::link() {
  next_ = newest;
  if (next_) next_->previous_ = this;
  newest = this;
}

void Temporary::forget() {
  (previous_ ? previous_->next_ : newest) = next_;
  if (next_) next_->previous_ = previous_;
  next_ = previous_ = nullptr;
  name_.clear();
}

void remove_own_temporaries() noexcept {
  lock();  // for ever
  for (const Temporary* temporary = newest; temporary; temporary = temporary->next_)
    remove_tree(AT_FDCWD, temporary->name_.c_str());
}

void remove_temporaries_on_signals() {
  struct sigaction action {};
  action.sa_handler = end_by;
  ::sigfillset(&action.sa_mask);
  for (const int signal :
       {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU}) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (signal == SIGPIPE || before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
  }
}

bool is_temporary_name(std::string_view file_name) {
  return file_name.starts_with(prefix);
}

void remove_temporaries(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error))
    if (is_temporary_name(entry.path().filename().string())) fs::remove_all(entry.path(), error);
}

}  // namespace nmt
