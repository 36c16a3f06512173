#pragma once

// Memory for the operands of kernels that ends, or begins, at a page that must not be accessed: a
// kernel that reads or writes beyond its operand crashes. Sanitizers do not see the kernels of
// AVX-512, since sanitizer builds have those of x86-64-v3 alone, nor inline assembly.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <string_view>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace nmt::test {

enum class GuardedSide { begin, end };

/// The side of the operands allocated from now on that is at a protected page. The environment
/// variable NMT_TEST_GUARD set to "begin" selects the begin; the default is the end.
inline GuardedSide& guarded_side() {
  static GuardedSide side = [] {
    const char* const setting = std::getenv("NMT_TEST_GUARD");
    return setting && std::string_view(setting) == "begin" ? GuardedSide::begin : GuardedSide::end;
  }();
  return side;
}

/// Whole pages between two protected ones. Released ones are used again.
class GuardedPages {
 public:
  static char* take(std::size_t pages) {
    const std::lock_guard lock(mutex());
    std::vector<char*>& some = released()[pages];
    if (!some.empty()) {
      char* const found = some.back();
      some.pop_back();
      return found;
    }
    void* const all = ::mmap(nullptr, (pages + 2) * page(), PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) throw std::bad_alloc();
    char* const usable = static_cast<char*>(all) + page();
    if (::mprotect(usable, pages * page(), PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    return usable;
  }
  static void release(char* usable, std::size_t pages) noexcept {
    const std::lock_guard lock(mutex());
    constexpr std::size_t most_kept = 256;
    if (pages <= most_kept)
      released()[pages].push_back(usable);
    else
      ::munmap(usable - page(), (pages + 2) * page());
  }
  static std::size_t page() {
    static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return size;
  }
  static std::size_t pages_of(std::size_t bytes) { return (bytes + page() - 1) / page(); }

 private:
  // Never destroyed: operands of static lifetime may be released later.
  static std::mutex& mutex() {
    static auto* const one = new std::mutex;
    return *one;
  }
  static std::map<std::size_t, std::vector<char*>>& released() {
    static auto* const all = new std::map<std::size_t, std::vector<char*>>;
    return *all;
  }
};

template <class T>
struct GuardedAllocator {
  using value_type = T;
  GuardedAllocator() = default;
  template <class Other>
  GuardedAllocator(const GuardedAllocator<Other>&) {}

  T* allocate(std::size_t n) {
    const std::size_t bytes = n * sizeof(T), pages = GuardedPages::pages_of(bytes);
    char* const usable = GuardedPages::take(pages);
    const bool at_end = guarded_side() == GuardedSide::end;
    return reinterpret_cast<T*>(at_end ? usable + pages * GuardedPages::page() - bytes : usable);
  }
  void deallocate(T* data, std::size_t n) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    GuardedPages::release(
        reinterpret_cast<char*>(address / GuardedPages::page() * GuardedPages::page()),
        GuardedPages::pages_of(n * sizeof(T)));
  }
  template <class Other>
  bool operator==(const GuardedAllocator<Other>&) const {
    return true;
  }
};

/// A vector for an operand of a kernel. Its capacity may exceed its size after insertions, so
/// shrink_to_fit() such a vector.
template <class T>
using Guarded = std::vector<T, GuardedAllocator<T>>;

}  // namespace nmt::test
