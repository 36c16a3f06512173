#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nmt::emulator {

enum class Access { read, write, atomic };

const char* name_of(Access access);

/// The time and the thread of an access.
struct AccessEvent {
  std::uint32_t launch = 0;  ///< 0: never
  std::uint32_t block = 0, thread = 0;
  std::uint32_t block_epoch = 0, warp_epoch = 0;
};

/// The last write to bytes that are always accessed together, and the reads since.
struct AccessCell {
  AccessEvent write, read;
  bool atomic = false;        ///< whether the last write was atomic
  bool many_readers = false;  ///< several threads have read since the write, in the same epoch,
  bool many_warps = false;    ///< in other warps,
  bool many_blocks = false;   ///< in other blocks,
  bool many_sets = false;     ///< or in other sets of blocks that meet
  bool written = false;       ///< ever
  std::uint32_t meetings = 0, set = 0;  ///< of blocks, at the last read
};

/// What kernels' threads have done to a region of memory, byte by byte.
class AccessHistory {
 public:
  explicit AccessHistory(std::size_t bytes) : pages_((bytes + page_bytes - 1) / page_bytes) {}

  /// Notes that the running thread accesses `bytes` bytes from `begin` on. Ends the launch if that
  /// races with an earlier access, or reads shared memory that nobody has written; `address` is for
  /// the message.
  void note(std::size_t begin, std::size_t bytes, Access access, const void* address, bool shared);

  /// Forbids to access these bytes, or permits it again. `begin` is a multiple of 64, and forbidden
  /// bytes end at one.
  void forbid(std::size_t begin, std::size_t bytes);
  void permit(std::size_t begin, std::size_t bytes);
  bool permits(std::size_t begin, std::size_t bytes) const {
    return permitted_.empty() || are_permitted(begin, bytes);
  }
  /// Bytes from the last permitted one before `begin`, or from the region's begin.
  std::size_t after_permitted(std::size_t begin) const;

 private:
  /// One cell for 1 << shift bytes: the largest power of two, up to 16, at whose multiples all
  /// accesses so far began and ended.
  struct Page {
    std::vector<AccessCell> cells;  // none before the first access
    unsigned shift = 0;
  };

  static constexpr std::size_t page_bytes = 256;

  static void prepare(Page& page, std::size_t begin, std::size_t end);

  bool are_permitted(std::size_t begin, std::size_t bytes) const;

  static constexpr std::size_t line_bytes = 64;

  std::vector<Page> pages_;
  std::vector<std::uint8_t> permitted_;  // of each line, so many first bytes; none: all
};

}  // namespace nmt::emulator
