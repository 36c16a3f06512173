#include "tensor/arena.h"

#include "core/rng.h"
#include "tensor/guard.h"
#include "tensor/tensor.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <vector>

#include <gtest/gtest.h>

// Allocations of the heap that still succeed; below 0: all. Not inlined: the compiler would miss
// the pairs of new and delete.
static int heap_allocations_left = -1;
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (heap_allocations_left == 0) throw std::bad_alloc();
  if (heap_allocations_left > 0) --heap_allocations_left;
  if (void* data = std::malloc(bytes)) return data;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* data) noexcept {
  std::free(data);
}
[[gnu::noinline]] void operator delete(void* data, std::size_t) noexcept {
  std::free(data);
}

namespace nmt {
namespace {

// A system with so many bytes.
class Limited : public MemorySource {
 public:
  explicit Limited(std::size_t bytes) : left_(bytes) {}
  char* allocate(std::size_t bytes) override {
    if (bytes > left_) return nullptr;
    left_ -= bytes;
    char* data = static_cast<char*>(std::aligned_alloc(64, bytes));
    sizes_[data] = bytes;
    return data;
  }
  void release(char* data) noexcept override {
    left_ += sizes_[data];
    std::free(data);
  }

 private:
  std::size_t left_;
  std::map<char*, std::size_t> sizes_;
};

// With chunks as small as a test wants them, which the heap alone has not.
std::unique_ptr<MemorySource> small_chunks() {
  return std::make_unique<Limited>(std::size_t{1} << 30);
}

TEST(Arena, LargeChunksAreWhole) {
  Arena arena;
  for (const std::size_t bytes : {std::size_t{2} << 20, (std::size_t{2} << 20) + 64}) {
    Block* const block = arena.allocate(bytes);
    std::memset(block->data, 1, bytes);
    arena.release(block);
  }
}

TEST(Arena, BlocksNeverOverlapAndMergeAgain) {
  Arena arena(1 << 16, small_chunks());
  Rng rng(1);
  struct Live {
    Block* block;
    std::size_t size;
    unsigned char mark;
  };
  std::vector<Live> live;
  for (int i = 0; i < 20000; ++i) {
    if (live.size() < 50 && rng.below(2) == 0) {
      const std::size_t size = 1 + rng.below(5000);
      Block* block = arena.allocate(size);
      ASSERT_GE(block->size, size);
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block->data) % 64, 0u);
      const auto mark = static_cast<unsigned char>(i);
      std::memset(block->data, mark, size);
      live.push_back({block, size, mark});
    } else if (!live.empty()) {
      const std::size_t at = rng.below(live.size());
      const auto [block, size, mark] = live[at];
      for (std::size_t j = 0; j < size; ++j)
        ASSERT_EQ(static_cast<unsigned char>(block->data[j]), mark);
      arena.release(block);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  for (const Live& one : live) arena.release(one.block);
  EXPECT_EQ(arena.statistics().in_use, 0u);
  arena.trim();
  EXPECT_EQ(arena.statistics().reserved, 0u);  // all neighbors merged into whole chunks
}

TEST(Arena, ARepeatedPatternAsksTheSystemForNothing) {
  Arena arena(1 << 12, small_chunks());
  const auto pattern = [&] {
    std::vector<Tensor> tensors;
    for (const std::int64_t n : {7, 1000, 33, 4096, 12}) tensors.emplace_back(arena, Shape{n, 3});
    tensors.erase(tensors.begin() + 1);
    tensors.emplace_back(arena, Shape{900});
  };
  pattern();
  const std::int64_t before = arena.statistics().system_allocations;
  for (int i = 0; i < 100; ++i) pattern();
  EXPECT_EQ(arena.statistics().system_allocations, before);
}

#ifndef NMT_GUARDED  // gaps between blocks need room
TEST(Arena, ReservesOneChunkOfJustItsSize) {
  Arena arena(1 << 16, small_chunks());
  arena.reserve(300000);  // a multiple of 64 is 300032
  EXPECT_EQ(arena.statistics().system_allocations, 1);
  EXPECT_EQ(arena.statistics().reserved, 300032u);
  arena.reserve(200000);  // the free block has as many bytes
  Block* const first = arena.allocate(200000);
  Block* const second = arena.allocate(100000);
  EXPECT_EQ(arena.statistics().system_allocations, 1);
  EXPECT_EQ(arena.statistics().reserved, 300032u);
  Block* const third = arena.allocate(64);
  EXPECT_EQ(arena.statistics().system_allocations, 2);
  for (Block* block : {first, second, third}) arena.release(block);
}

TEST(Arena, ReservesNothingWithoutMemory) {
  Arena arena(1 << 12, std::make_unique<Limited>(100000));
  arena.reserve(200000);
  EXPECT_EQ(arena.statistics().system_allocations, 0);
  EXPECT_EQ(arena.statistics().reserved, 0u);
}
#endif

#ifdef NMT_GUARDED
TEST(Arena, NothingBesideATensorIsAccessible) {
  const auto write = [](std::int64_t n, std::int64_t at) {
    Arena arena;
    Tensor before(arena, Shape{16}), tensor(arena, Shape{n}), after(arena, Shape{16});
    static_cast<volatile float*>(tensor.f32())[at] = 1;
  };
  for (const std::int64_t n : {1, 15, 16, 160}) {
    write(n, 0), write(n, n - 1);
    EXPECT_DEATH(write(n, n), "use-after-poison");
    EXPECT_DEATH(write(n, -1), "use-after-poison");
  }
  const auto use_late = [] {
    Arena arena;
    volatile float* data = nullptr;
    {
      Tensor tensor(arena, Shape{16});
      data = tensor.f32();
    }
    data[0] = 1;
  };
  EXPECT_DEATH(use_late(), "use-after-poison");
}
#endif

TEST(Arena, AsksForNoMoreThanItNeedsWhereAWholeChunkIsRefused) {
  Arena arena(1 << 16, std::make_unique<Limited>(100000));
  const auto gap = std::int64_t{host_guard.gap} / 4;
  const Tensor first(arena, Shape{10});  // a chunk of 65,536 bytes, and 34,464 are left
  const Tensor second(arena, Shape{16368 - 2 * gap});
  EXPECT_EQ(arena.statistics().reserved, 65536u);
  const Tensor third(arena, Shape{8000});
  EXPECT_EQ(arena.statistics().reserved, 65536u + 32000u + host_guard.gap);
  EXPECT_THROW(Tensor(arena, Shape{4096}), std::bad_alloc);
}

// Whichever allocation of the heap fails within allocate(): the arena stays as it was and loses
// nothing.
TEST(Arena, StaysAsItWasWhereTheHeapHasNoMore) {
  int failures = 0;
  for (const bool chunk_is_there : {false, true})
    for (int left = 0;; ++left) {
      Arena arena(1 << 12);
      if (chunk_is_there) arena.release(arena.allocate(5000));  // one block with room for a rest
      const Arena::Statistics before = arena.statistics();
      heap_allocations_left = left;
      Block* block = nullptr;
      try {
        block = arena.allocate(100);
      } catch (const std::bad_alloc&) {
      }
      heap_allocations_left = -1;
      if (!block) {
        ++failures;
        EXPECT_EQ(arena.statistics().in_use, before.in_use);
        EXPECT_EQ(arena.statistics().reserved, before.reserved);
      } else {
        arena.release(block);
      }
      arena.trim();
      EXPECT_EQ(arena.statistics().reserved, 0u) << left;
      if (block) break;
    }
  EXPECT_GE(failures, 3);
}

TEST(Tensor, SharesStorageAndChecksShapes) {
  Arena arena;
  Tensor a(arena, {4, 3});
  for (int i = 0; i < 12; ++i) a.f32()[i] = static_cast<float>(i);
  const Tensor row = a.slice(2, 1);
  EXPECT_EQ(row.f32()[0], 6.0f);
  EXPECT_EQ(row.shape(), (Shape{1, 3}));
  Tensor flat = a.reshape({12});
  a = {};
  EXPECT_EQ(flat.f32()[11], 11.0f);
  EXPECT_THROW(flat.reshape({5}), Error);
  EXPECT_THROW(flat.slice(10, 3), Error);
  EXPECT_THROW(flat.data<std::int32_t>(), Error);
}

TEST(Tensor, ABorrowedOneCountsItsOwnReferences) {
  Arena arena;
  EXPECT_FALSE(Tensor().borrow());
  Tensor whole(arena, {4, 3});
  Tensor view = whole.slice(1, 2).borrow();
  EXPECT_TRUE(whole.unique());
  EXPECT_TRUE(view.unique());
  EXPECT_EQ(view.f32(), whole.f32() + 3);
  EXPECT_EQ(view.shape(), (Shape{2, 3}));
  const Tensor copy = view;
  EXPECT_FALSE(view.unique());
  view = {};
  EXPECT_EQ(copy.f32(), whole.f32() + 3);
}

}  // namespace
}  // namespace nmt
