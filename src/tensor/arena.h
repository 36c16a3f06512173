#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace nmt {

class Arena;

/// A piece of an arena's memory, reference-counted by the tensors that look at it.
struct Block {
  Arena* arena = nullptr;
  char* data = nullptr;
  std::size_t size = 0;
  int references = 0;
  Block* before = nullptr;  // neighbors in the same chunk, in address order
  Block* after = nullptr;
  Block* free_before = nullptr;  // neighbors in a free list
  Block* free_after = nullptr;
};

/// Where device memory comes from. The CPU's is the heap, 64-byte aligned.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// Null when there is no more; the arena then gives back what it does not use and asks again, and
  /// refuses.
  virtual char* allocate(std::size_t bytes) = 0;
  virtual void release(char* data) noexcept = 0;
  /// Throws: there is no memory for so many bytes. std::bad_alloc by default.
  [[noreturn]] virtual void refuse(std::size_t) { throw std::bad_alloc(); }
};

/// The caching allocator of one device: good-fit over chunks taken from the system, free neighbors
/// merged. Once a training or decoding step has seen its sizes, it asks the system for nothing (the
/// counter below shows it). For one thread.
class Arena {
 public:
  struct Statistics {
    std::int64_t system_allocations = 0;  ///< chunks ever asked of the system
    std::size_t reserved = 0;             ///< bytes held from the system
    std::size_t in_use = 0;               ///< bytes in live blocks
    std::size_t peak = 0;                 ///< most bytes ever in live blocks
  };

  /// Chunks are at least `growth` bytes. `source` defaults to the heap.
  explicit Arena(std::size_t growth = std::size_t{1} << 20,
                 std::unique_ptr<MemorySource> source = nullptr);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Throws std::bad_alloc when the system has no more, even after trim(). The arena stays as it
  /// was.
  Block* allocate(std::size_t bytes);
  void release(Block* block) noexcept;
  /// Until let_go() what is released stays taken: work that runs beside other work may still use
  /// it.
  void hold() { holding_ = true; }
  void let_go() noexcept;
  /// Gives chunks without live blocks back to the system.
  void trim();
  const Statistics& statistics() const { return statistics_; }

 private:
  static constexpr int bins = 48;
  static int bin_of(std::size_t size);
  void insert_free(Block* block);
  void remove_free(Block* block);
  Block* find_free(std::size_t size);
  /// Makes as many spare headers as one allocate() can need: a chunk's and its rest's.
  void make_headers();
  Block* new_block() noexcept;
  char* allocate_chunk(std::size_t bytes);
  void recycle(Block* block) noexcept;
  void free(Block* block) noexcept;

  std::unique_ptr<MemorySource> source_;
  std::size_t growth_;
  std::array<Block*, bins> free_{};
  std::vector<std::unique_ptr<Block>> blocks_;  // every header ever made
  std::vector<Block*> spare_;                   // headers not in use
  Block* held_ = nullptr;                       // released, but held
  bool holding_ = false;
  Statistics statistics_;
};

}  // namespace nmt
