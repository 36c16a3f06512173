#pragma once

#include "core/mapped_file.h"
#include "text/lines.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// A text file of any size with direct access to its lines: mapped, not copied; 8 bytes of memory a
/// line. Reading is thread-safe.
class TextFile {
 public:
  /// Finds the lines. Errors (usage): as MappedFile.
  explicit TextFile(const std::string& path);

  std::int64_t lines() const { return static_cast<std::int64_t>(begins_.size()); }
  /// Line number i from 0 as it stands in the file, without its LF.
  std::string_view raw(std::int64_t i) const;
  /// The same, cleaned as lines.h says: valid UTF-8. Points into the file, or into `storage`.
  std::string_view line(std::int64_t i, std::string& storage, LineNotes* notes = nullptr) const;
  /// What is unusual about all lines; reads the whole file.
  LineNotes notes() const;

  const std::string& path() const { return file_.path(); }
  std::size_t bytes() const { return file_.bytes().size(); }
  /// A number that changes with the size and, in all likelihood, with the content: of small files
  /// all of it counts, of large ones samples.
  std::uint64_t fingerprint() const;

 private:
  std::size_t end(std::size_t i) const;
  bool ended(std::size_t i) const;
  MappedFile file_;
  std::vector<std::uint64_t> begins_;  // offset of every line
};

enum class Side { source, target };

/// Two files that are translations of each other, line by line. Reading is thread-safe.
class ParallelCorpus {
 public:
  /// Errors: usage as MappedFile; data when a file is empty, or the numbers of lines differ: both
  /// are told, and the line from which on the files fit together worse than they would shifted.
  ParallelCorpus(const std::string& source_path, const std::string& target_path);

  std::int64_t pairs() const { return source_.lines(); }
  const TextFile& file(Side side) const { return side == Side::source ? source_ : target_; }
  std::string_view line(Side side, std::int64_t i, std::string& storage) const {
    return file(side).line(i, storage);
  }

  /// 32 hexadecimal digits: of the corpus that a position in it belongs to.
  std::string hash() const;

 private:
  TextFile source_, target_;
};

}  // namespace nmt
