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

namespace nmt {

/// What an arena leaves behind its tensors and forbids to access: gaps and free blocks. A kernel
/// that leaves its tensor is then an error there instead of a wrong number somewhere else. Without
/// a gap, nothing is forbidden and the functions are not called.
struct Guard {
  std::size_t gap = 0;  ///< bytes, a multiple of an arena's alignment
  void (*forbid)(const char* data, std::size_t bytes) = nullptr;
  void (*permit)(const char* data, std::size_t bytes) = nullptr;
};

/// Of host memory: AddressSanitizer sees kernels of the CPU. Other builds have no gaps.
#ifdef NMT_GUARDED
inline constexpr Guard host_guard{
    64, [](const char* data, std::size_t bytes) { __asan_poison_memory_region(data, bytes); },
    [](const char* data, std::size_t bytes) { __asan_unpoison_memory_region(data, bytes); }};
#else
inline constexpr Guard host_guard{};
#endif

}  // namespace nmt
