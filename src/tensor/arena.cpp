#include "tensor/arena.h"

#include "core/error.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include <sys/mman.h>

namespace nmt {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20;

class Heap : public MemorySource {
 public:
  // Large chunks lie in huge pages where the system has them to give: weights and their products
  // then need fewer translations of addresses. This is a hint, whose result is ignored.
  char* allocate(std::size_t bytes) override {
    if (bytes < huge_page) return static_cast<char*>(std::aligned_alloc(alignment, bytes));
    const std::size_t whole = (bytes + huge_page - 1) / huge_page * huge_page;
    void* const chunk = std::aligned_alloc(huge_page, whole);
#if defined(MADV_HUGEPAGE)
    if (chunk) ::madvise(chunk, bytes, MADV_HUGEPAGE);
#endif
    return static_cast<char*>(chunk);
  }
  void release(char* data) noexcept override {
    std::free(data);
  }
};

bool is_free(const Block* block) {
  return block->references == 0;
}

}  // namespace

Arena::Arena(std::size_t growth, std::unique_ptr<MemorySource> source)
    : source_(source ? std::move(source) : std::make_unique<Heap>()),
      guard_(source_->guard()),
      growth_(growth) {}

Arena::~Arena() {
  trim();
}

int Arena::bin_of(std::size_t size) {
  return std::bit_width(size / alignment) - 1;
}

void Arena::insert_free(Block* block) {
  Block*& head = free_[bin_of(block->size)];
  block->references = 0;
  block->free_before = nullptr;
  block->free_after = head;
  if (head) head->free_before = block;
  head = block;
}

void Arena::remove_free(Block* block) {
  (block->free_before ? block->free_before->free_after : free_[bin_of(block->size)]) =
      block->free_after;
  if (block->free_after) block->free_after->free_before = block->free_before;
}

// The smallest block that fits in the first bin that has one; of equal sizes the one at the lowest
// address. So addresses depend on the live blocks alone: equal steps get equal addresses, which
// CUDA graphs rely on.
Block* Arena::find_free(std::size_t size) {
  for (int bin = bin_of(size); bin < bins; ++bin) {
    Block* best = nullptr;
    for (Block* block = free_[bin]; block; block = block->free_after)
      if (block->size >= size &&
          (!best || std::pair(block->size, block->data) < std::pair(best->size, best->data)))
        best = block;
    if (best) return best;
  }
  return nullptr;
}

void Arena::make_headers() {
  while (spare_.size() < 2) {
    spare_.reserve(blocks_.size() + 1);  // so that recycle() never allocates
    blocks_.push_back(std::make_unique<Block>());
    spare_.push_back(blocks_.back().get());
  }
}

Block* Arena::new_block() noexcept {
  Block* block = spare_.back();
  spare_.pop_back();
  *block = Block{};
  block->arena = this;
  return block;
}

void Arena::recycle(Block* block) noexcept {
  spare_.push_back(block);
}

// Null where the source has no memory: allocate() then frees idle chunks and tries again.
char* Arena::allocate_chunk(std::size_t bytes) {
  try {
    return source_->allocate(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

Block* Arena::add_chunk(char* data, std::size_t bytes) noexcept {
  Block* const block = new_block();
  block->data = data;
  block->size = bytes;
  ++statistics_.system_allocations;
  statistics_.reserved += bytes;
  if (guard_.gap > 0) guard_.forbid(data, bytes);
  return block;
}

void Arena::reserve(std::size_t bytes) {
  const std::size_t size = std::max(alignment, (bytes + alignment - 1) / alignment * alignment);
  make_headers();
  if (find_free(size)) return;
  if (char* const data = allocate_chunk(size)) insert_free(add_chunk(data, size));
}

Block* Arena::allocate(std::size_t bytes) {
  const std::size_t size =
      std::max(alignment, (bytes + alignment - 1) / alignment * alignment) + guard_.gap;
  make_headers();  // first, since it can fail
  Block* block = find_free(size);
  if (block) {
    remove_free(block);
  } else {
    std::size_t chunk = std::max(size, growth_);
    char* data = allocate_chunk(chunk);
    if (!data) {
      trim();
      chunk = size;  // no room to spare
      data = source_->allocate(chunk);
    }
    if (!data) source_->refuse(size);
    block = add_chunk(data, chunk);
  }
  if (block->size - size >= alignment) {
    Block* rest = new_block();
    rest->data = block->data + size;
    rest->size = block->size - size;
    rest->before = block;
    rest->after = block->after;
    if (rest->after) rest->after->before = rest;
    block->after = rest;
    block->size = size;
    insert_free(rest);
  }
  block->references = 1;
  if (guard_.gap > 0) guard_.permit(block->data, bytes);
  statistics_.in_use += block->size - guard_.gap;
  statistics_.peak = std::max(statistics_.peak, statistics_.in_use);
  return block;
}

// A held block looks live to its neighbors.
void Arena::release(Block* block) noexcept {
  if (!holding_) return free(block);
  block->references = 1;
  block->free_after = held_;
  held_ = block;
}

void Arena::let_go() noexcept {
  holding_ = false;
  while (held_) {
    Block* const block = held_;
    held_ = block->free_after;
    block->references = 0;
    free(block);
  }
}

void Arena::free(Block* block) noexcept {
  statistics_.in_use -= block->size - guard_.gap;
  if (guard_.gap > 0) guard_.forbid(block->data, block->size);
  if (Block* next = block->after; next && is_free(next)) {
    remove_free(next);
    block->size += next->size;
    block->after = next->after;
    if (block->after) block->after->before = block;
    recycle(next);
  }
  if (Block* previous = block->before; previous && is_free(previous)) {
    remove_free(previous);
    previous->size += block->size;
    previous->after = block->after;
    if (previous->after) previous->after->before = previous;
    recycle(block);
    block = previous;
  }
  insert_free(block);
}

void Arena::trim() {
  for (Block* head : free_) {
    for (Block* block = head; block;) {
      Block* following = block->free_after;
      if (!block->before && !block->after) {
        remove_free(block);
        if (guard_.gap > 0) guard_.permit(block->data, block->size);
        source_->release(block->data);
        statistics_.reserved -= block->size;
        recycle(block);
      }
      block = following;
    }
  }
}

}  // namespace nmt
