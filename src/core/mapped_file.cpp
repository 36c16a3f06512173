#include "core/mapped_file.h"

#include "core/error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace nmt {

namespace {
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
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.number, 0);
  if (mapped == MAP_FAILED)
    NMT_FAIL("{}: {} bytes cannot be mapped: {}", path, size_, std::strerror(errno));
  data_ = static_cast<const char*>(mapped);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, std::size_t{0})) {}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<char*>(data_), size_);
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
