#pragma once

#include "tensor/guard.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace nmt {

class Arena;

/// A piece of an arena's memory, reference-counted by the tensors that view it.
struct Block {
  Arena* arena = nullptr;  ///< null: borrowed (Tensor::borrow)
  char* data = nullptr;
  std::size_t size = 0;
  int references = 0;
  Block* before = nullptr;  // neighbors in the same chunk, in address order
  Block* after = nullptr;
  Block* free_before = nullptr;  // neighbors in a free list
  Block* free_after = nullptr;
};

/// The source of an arena's chunks. On the CPU it is the heap, 64-byte aligned.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// Null when there is no more memory. The arena then frees its unused chunks and tries once more
  /// before it calls refuse().
  virtual char* allocate(std::size_t bytes) = 0;
  virtual void release(char* data) noexcept = 0;
  /// How accesses to the memory outside of tensors are found.
  virtual Guard guard() const { return host_guard; }
  /// Throws because there is no memory for so many bytes; std::bad_alloc by default.
  [[noreturn]] virtual void refuse(std::size_t) { throw std::bad_alloc(); }
};

/// The caching allocator of one device: good fit over chunks allocated from the system; free
/// neighbors are merged. Once a training or decoding step has seen its sizes, it allocates nothing
/// from the system (Statistics::system_allocations shows it). For one thread.
class Arena {
 public:
  struct Statistics {
    std::int64_t system_allocations = 0;  ///< chunks allocated from the system
    std::size_t reserved = 0;             ///< bytes held from the system
    std::size_t in_use = 0;               ///< bytes in live blocks, without their gaps
    std::size_t peak = 0;                 ///< maximum of in_use
  };

  /// Chunks are at least `growth` bytes, by default a huge page. `source` defaults to the heap.
  explicit Arena(std::size_t growth = std::size_t{2} << 20,
                 std::unique_ptr<MemorySource> source = nullptr);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Throws std::bad_alloc when the system has no more memory, even after trim(). The arena is
  /// unchanged then.
  Block* allocate(std::size_t bytes);
  void release(Block* block) noexcept;
  /// Until let_go(), released blocks are not reused: work on another stream may still read them.
  void hold() { holding_ = true; }
  void let_go() noexcept;
  /// Allocates a chunk of just this size, unless a free block has as many bytes; nothing if the
  /// system has no memory.
  void reserve(std::size_t bytes);
  /// Frees chunks without live blocks.
  void trim();
  const Statistics& statistics() const { return statistics_; }
  /// That of its source, for arenas in memory of this one.
  const Guard& guard() const { return guard_; }

 private:
  static constexpr int bins = 48;
  static int bin_of(std::size_t size);
  void insert_free(Block* block);
  void remove_free(Block* block);
  Block* find_free(std::size_t size);
  /// Makes as many spare headers as one allocate() can need: of a chunk and of its remainder.
  void make_headers();
  Block* new_block() noexcept;
  char* allocate_chunk(std::size_t bytes);
  Block* add_chunk(char* data, std::size_t bytes) noexcept;
  void recycle(Block* block) noexcept;
  void free(Block* block) noexcept;

  std::unique_ptr<MemorySource> source_;
  Guard guard_;
  std::size_t growth_;
  std::array<Block*, bins> free_{};
  std::vector<std::unique_ptr<Block>> blocks_;  // every header ever made
  std::vector<Block*> spare_;                   // headers not in use
  Block* held_ = nullptr;                       // released, but held
  bool holding_ = false;
  Statistics statistics_;
};

}  // namespace nmt
