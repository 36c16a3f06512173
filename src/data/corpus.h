#pragma once

#include "core/files/mapped_file.h"
#include "data/text_identity.h"
#include "text/lines.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// A memory-mapped text file with random access to its lines, at 8 bytes of memory per line.
/// Reading is thread-safe.
class TextFile {
 public:
  /// Indexes the lines. Errors: (usage) as MappedFile; (data) as require_utf8.
  explicit TextFile(const std::string& path);

  std::int64_t lines() const { return static_cast<std::int64_t>(begins_.size()); }
  /// Line i, from 0, unchanged, without its LF.
  std::string_view raw(std::int64_t i) const;
  /// Line i cleaned as lines.h describes: valid UTF-8. Points into the file or into `storage`.
  std::string_view line(std::int64_t i, std::string& storage, LineNotes* notes = nullptr) const;
  /// The first of the lines that are the context of line i: the at most `sentences` lines before it
  /// without a blank line between (text/document_context.h). i itself where there are none.
  std::int64_t context_begin(std::int64_t i, int sentences) const;
  /// The irregularities of all lines; reads the whole file.
  LineNotes notes() const;

  const std::string& path() const { return file_.path(); }
  std::size_t bytes() const { return file_.bytes().size(); }
  /// A hash of the size and the content; the first call reads the whole file. Not thread-safe.
  std::uint64_t fingerprint() const;
  /// The same by the definition of version 0.2.0, which reads samples of files of more than 4 MiB.
  std::uint64_t v0_2_fingerprint() const;
  /// Both, each of 16 hexadecimal digits.
  TextIdentity identity() const;

 private:
  std::size_t end(std::size_t i) const;
  bool ended(std::size_t i) const;
  MappedFile file_;
  std::vector<std::uint64_t> begins_;  // byte offset of every line
  mutable std::optional<std::uint64_t> fingerprint_, v0_2_fingerprint_;
};

enum class Side { source, target };

/// Two files that are translations of each other, line by line. Reading is thread-safe.
class ParallelCorpus {
 public:
  /// Errors: as TextFile; (data) a file is empty, or the numbers of lines differ. The message then
  /// gives both numbers and the line from which the files are probably misaligned.
  ParallelCorpus(const std::string& source_path, const std::string& target_path);

  std::int64_t pairs() const { return source_.lines(); }
  const TextFile& file(Side side) const { return side == Side::source ? source_ : target_; }
  std::string_view line(Side side, std::int64_t i, std::string& storage) const {
    return file(side).line(i, storage);
  }

  /// Each of 32 hexadecimal digits, stored with positions in the corpus.
  TextIdentity identity() const;

 private:
  TextFile source_, target_;
};

}  // namespace nmt
