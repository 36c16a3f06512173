#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace nmt {

/// The whole file. Errors (usage): missing, unreadable, a folder; (data): larger than `most` bytes.
std::string read_file(const std::string& path, std::int64_t most = std::int64_t{1} << 32);

/// An output. A file takes its place at once and whole: it is written aside in the same folder,
/// synced, renamed on commit(); what was there before stays until then, and a symbolic link stays a
/// link. Devices and pipes are written directly; "" and "-" are standard output. Errors, one line
/// with the name and the reason: (usage) the name is a folder's or cannot be opened; (failed) it
/// cannot be written; no room, with the bytes needed where they are known. A closed pipe is such an
/// error only where SIGPIPE is ignored.
class AtomicFile {
 public:
  /// `expected`: bytes that will be written, to check the room for before; 0: not known.
  explicit AtomicFile(const std::string& path, std::int64_t expected = 0);
  /// Removes what was not committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Nothing is written after it.
  void commit();

 private:
  void give_up();
  std::string name_;            // for messages
  std::string target_, aside_;  // aside_ becomes target_; empty: nothing to rename
  int descriptor_ = -1;
  std::int64_t expected_, written_ = 0;
};

/// AtomicFile in one call.
void write_file(const std::string& path, std::string_view contents);

/// Publishes a folder in one step: `fill` writes files into a new folder beside it, all is synced,
/// then renamed to `path`, which must not exist. After a failure nothing is left. Errors (failed).
void write_directory(const std::string& path,
                     const std::function<void(const std::string& aside)>& fill);

/// Makes the folder and those above it. Error (failed).
void make_directories(const std::string& path);
/// Whether the name is that of something half-written which AtomicFile or write_directory leave
/// behind when they are killed.
bool is_aside(std::string_view file_name);
/// Removes such leftovers directly in the folder. Call when no other process writes there.
void remove_asides(const std::string& directory);
/// Flushes names in the folder to the disk. Error (failed).
void sync_directory(const std::string& path);
/// Bytes this process may still write on the file system that holds the folder.
std::int64_t free_bytes(const std::string& directory);

}  // namespace nmt
