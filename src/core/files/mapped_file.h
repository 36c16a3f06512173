#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nmt {

/// A regular file mapped read-only into memory. The kernel loads pages on access and may evict
/// them.
class MappedFile {
 public:
  /// Errors (usage): missing, unreadable, not a regular file.
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::string_view bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  /// Hints the access pattern to the kernel: sequential, or random with some read-ahead (lines that
  /// are read together lie close together).
  void advise_sequential() const;
  void advise_random() const;
  /// Releases the memory of the whole pages in [begin, begin + count). Later reads load them from
  /// the file again.
  void release(std::size_t begin, std::size_t count) const;

 private:
  std::string path_;
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

/// For programs: reading a mapped file that has become shorter ends the program with a message that
/// names it (status `data`) instead of the signal SIGBUS.
void report_shortened_files();

}  // namespace nmt
