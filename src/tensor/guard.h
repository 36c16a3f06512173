#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define NMT_GUARDED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NMT_GUARDED 1
#endif
#endif
#ifdef NMT_GUARDED
#include <sanitizer/asan_interface.h>
#endif

// In builds with AddressSanitizer, an arena's tensors have a gap behind them, and the gaps and the
// free blocks must not be accessed: a kernel of the CPU that leaves its tensor is an error there
// instead of a wrong number somewhere else. Other builds have no gaps.
namespace nmt::guard {

#ifdef NMT_GUARDED
inline constexpr std::size_t gap = 64;
inline void forbid(const char* data, std::size_t bytes) {
  __asan_poison_memory_region(data, bytes);
}
inline void permit(const char* data, std::size_t bytes) {
  __asan_unpoison_memory_region(data, bytes);
}
#else
inline constexpr std::size_t gap = 0;
inline void forbid(const char*, std::size_t) {}
inline void permit(const char*, std::size_t) {}
#endif

}  // namespace nmt::guard
