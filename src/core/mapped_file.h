#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nmt {

/// A regular file's bytes, mapped for reading: the kernel brings pages in as they are touched and
/// may drop them again.
class MappedFile {
 public:
  /// Errors (usage): not there, not readable, not a regular file.
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::string_view bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  /// What the kernel may expect: read from front to back, or here and there (with some read-ahead:
  /// lines lie close together).
  void expect_sequential() const;
  void expect_random() const;
  /// Gives back the memory of whole pages in [begin, begin + count); what is read again comes from
  /// the file again.
  void forget(std::size_t begin, std::size_t count) const;

 private:
  std::string path_;
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace nmt
