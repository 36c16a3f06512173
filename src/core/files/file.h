#pragma once

#include "core/files/temporary.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace nmt {

/// Reads a whole file. Errors (usage): missing, unreadable or a directory; (data): larger than
/// `max_bytes`.
std::string read_file(const std::string& path, std::int64_t max_bytes = std::int64_t{1} << 32);

/// An output file that appears atomically. It is written to a temporary file in the same directory,
/// synced, and renamed on commit(); until then the previous file stays, and the new one has its
/// permissions. Symbolic links are followed and kept. Devices and pipes are written directly; ""
/// and "-" mean standard output.
///
/// Errors are one line with the file name and the reason: (usage) the name is a directory or cannot
/// be opened; (failed) a write failed, or the disk is full, with the bytes needed where they are
/// known. A closed pipe raises such an error only where SIGPIPE is ignored.
class AtomicFile {
 public:
  /// `expected`: bytes that will be written, checked against the free space; 0: unknown.
  explicit AtomicFile(const std::string& path, std::int64_t expected = 0);
  /// Removes the temporary file unless it was committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Publishes the file. No write may follow.
  void commit();

 private:
  std::string name_;  // for error messages
  std::string target_;
  Temporary temporary_;  // renamed to target_ on commit(); none if the output is written directly
  int descriptor_ = -1;
  std::int64_t expected_, written_ = 0;
};

/// Writes a file atomically (AtomicFile).
void write_file(const std::string& path, std::string_view contents);

/// Creates a directory atomically: `fill` writes files into a temporary sibling directory, which is
/// synced and then renamed to `path`. `path` must not exist. After a failure nothing is left
/// behind. Errors (failed).
void write_directory(const std::string& path,
                     const std::function<void(const std::string& directory)>& fill);

/// The last component of a directory's path, for titles.
std::string directory_name(const std::string& directory);
/// Whether there is such a directory. A path that cannot be looked up names none.
bool is_directory(const std::string& path);
/// Creates the directory and its parents. Errors: (usage) not allowed, or a file is in the way;
/// (failed) disk full.
void make_directories(const std::string& path);
/// Syncs the directory entries to disk (fsync). Error (failed).
void sync_directory(const std::string& path);
/// Which file or directory a path names: the same while it only gets other names. Null: none.
struct FileIdentity {
  std::uint64_t device, number;
  bool operator==(const FileIdentity&) const = default;
};
std::optional<FileIdentity> identity_of(const std::string& path);
/// Bytes available to this process on the file system of the directory.
std::int64_t free_bytes(const std::string& directory);

}  // namespace nmt
