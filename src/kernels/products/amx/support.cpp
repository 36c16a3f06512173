#include "kernels/products/amx/support.h"

#include <cstdlib>
#include <cstring>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace nmt::kernels {
namespace {

#if defined(__x86_64__) && defined(__linux__)
bool is_set(unsigned bits, int bit) {
  return (bits >> bit & 1u) != 0;
}

// Whether the operating system saves the state of the tiles: bits 17 and 18 of XCR0.
bool saves_tiles() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || !is_set(ecx, 27)) return false;  // OSXSAVE
  unsigned low = 0, high = 0;
  asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return is_set(low, 17) && is_set(low, 18);
}

// Whether Linux lets the process use the tiles: arch_prctl(ARCH_REQ_XCOMP_PERM,
// XFEATURE_XTILEDATA), Documentation/arch/x86/xstate.rst of Linux 5.16 and later.
bool may_use_tiles() {
  return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}

AmxSupport detect() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return {};
  // Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, CPUID leaf 7.
  const bool has_tiles = is_set(edx, 24), has_bfloat16 = is_set(edx, 22),
             has_int8 = is_set(edx, 25);
  if (!has_tiles || !saves_tiles() || !may_use_tiles()) return {};
  return {has_bfloat16, has_int8};
}
#else
AmxSupport detect() {
  return {};
}
#endif

}  // namespace

AmxSupport amx_support() {
  static const AmxSupport support = detect();
  return support;
}

AmxSupport amx_to_use() {
  const char* const setting = std::getenv("NMT_AMX");
  return setting && std::strcmp(setting, "0") == 0 ? AmxSupport{} : amx_support();
}

}  // namespace nmt::kernels
