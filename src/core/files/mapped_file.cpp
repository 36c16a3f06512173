#include "core/files/mapped_file.h"

#include "core/error.h"
#include "core/files/temporary.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace nmt {

namespace {

// The mapped files, as a signal handler can read them.
struct Mapping {
  std::atomic<const char*> data{nullptr};
  std::size_t size = 0;
  char path[512] = "";
};
std::array<Mapping, 64> mappings;  // more are mapped without a message
std::mutex registration;

void enter(const char* data, std::size_t size, const std::string& path) {
  const std::lock_guard lock(registration);
  for (Mapping& mapping : mappings) {
    if (mapping.data) continue;
    mapping.size = size;
    path.copy(mapping.path, sizeof mapping.path - 1);
    mapping.path[std::min(path.size(), sizeof mapping.path - 1)] = 0;
    mapping.data = data;
    return;
  }
}

void leave(const char* data) {
  for (Mapping& mapping : mappings)
    if (mapping.data == data) mapping.data = nullptr;
}

void write_error(const char* text) {
  // Nothing can be done where stderr fails.
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

void on_bus_error(int signal, siginfo_t* info, void*) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const Mapping& mapping : mappings) {
    const auto data = reinterpret_cast<std::uintptr_t>(mapping.data.load());
    if (data == 0 || at < data || at >= data + mapping.size) continue;
    write_error("\nerror: ");
    write_error(mapping.path);
    write_error(": became shorter while it was read\n");
    remove_own_temporaries();
    ::_exit(static_cast<int>(ExitStatus::data));
  }
  ::signal(signal, SIG_DFL);  // the instruction is executed again and ends the program
}

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};
}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  // Without O_NONBLOCK, opening a pipe would block until it has a writer.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status {};
  if (file.number < 0 || ::fstat(file.number, &status) != 0) {
    fail(ExitStatus::usage, "{}: cannot be opened: {}", path, std::strerror(errno));
  }
  if (S_ISDIR(status.st_mode))
    fail(ExitStatus::usage, "{}: is a directory; expected a regular file", path);
  if (!S_ISREG(status.st_mode))
    fail(ExitStatus::usage, "{}: is a pipe or device; expected a regular file", path);
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  // Private: some network file systems refuse shared mappings.
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (mapped == MAP_FAILED)
    NMT_FAIL("{}: {} bytes cannot be mapped: {}", path, size_, std::strerror(errno));
  data_ = static_cast<const char*>(mapped);
  enter(data_, size_, path_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, std::size_t{0})) {}

MappedFile::~MappedFile() {
  if (!data_) return;
  leave(data_);
  ::munmap(const_cast<char*>(data_), size_);
}

void report_shortened_files() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

// madvise() is a hint only; its result is ignored.
void MappedFile::advise_sequential() const {
  if (data_) ::madvise(const_cast<char*>(data_), size_, MADV_SEQUENTIAL);
}
void MappedFile::advise_random() const {
  if (data_) ::madvise(const_cast<char*>(data_), size_, MADV_NORMAL);
}

void MappedFile::release(std::size_t begin, std::size_t count) const {
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t first = (begin + page - 1) / page * page,
                    last = std::min(begin + count, size_) / page * page;
  if (data_ && first < last)
    ::madvise(const_cast<char*>(data_) + first, last - first, MADV_DONTNEED);
}

}  // namespace nmt
