#pragma once

#include "tensor/arena.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace nmt {

/// Memory of an arena for another one.
class SubArenaMemory : public MemorySource {
 public:
  explicit SubArenaMemory(Arena& whole) : whole_(whole) {}
  char* allocate(std::size_t bytes) override {
    blocks_.reserve(blocks_.size() + 1);
    blocks_.push_back(whole_.allocate(bytes));
    return blocks_.back()->data;
  }
  void release(char* data) noexcept override {
    const auto block = std::find_if(blocks_.begin(), blocks_.end(),
                                    [&](const Block* b) { return b->data == data; });
    whole_.release(*block);
    blocks_.erase(block);
    ++releases_;
  }
  Guard guard() const override { return whole_.guard(); }
  /// Whether the memory of this arena has the address.
  bool has(const void* p) const {
    const auto* const at = static_cast<const char*>(p);
    return std::ranges::any_of(
        blocks_, [&](const Block* b) { return at >= b->data && at < b->data + b->size; });
  }
  /// How often memory was given back.
  std::int64_t releases() const { return releases_; }

 private:
  Arena& whole_;
  std::vector<Block*> blocks_;
  std::int64_t releases_ = 0;
};

/// An arena in memory of another one.
struct SubArena {
  explicit SubArena(Arena& whole)
      : memory(new SubArenaMemory(whole)),
        arena(std::size_t{1} << 16, std::unique_ptr<MemorySource>(memory)) {}
  SubArenaMemory* const memory;
  Arena arena;
};

}  // namespace nmt
