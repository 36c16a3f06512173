#pragma once

#include <cstdint>

#include <unistd.h>

// Sizes of the processor's caches as the system tells them.

namespace nmt::kernels {

/// Bytes of the second-level cache of a core; 1 MB where the system does not tell.
inline std::int64_t second_level_cache() {
#ifdef _SC_LEVEL2_CACHE_SIZE
  if (const long bytes = ::sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) return bytes;
#endif
  return 1024 * 1024;
}

/// Bytes of the third-level cache, which cores share; 0 where there is none or the system does not
/// tell.
inline std::int64_t third_level_cache() {
#ifdef _SC_LEVEL3_CACHE_SIZE
  if (const long bytes = ::sysconf(_SC_LEVEL3_CACHE_SIZE); bytes > 0) return bytes;
#endif
  return 0;
}

}  // namespace nmt::kernels
