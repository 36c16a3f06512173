#pragma once

#include <cstdint>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace nmt {

/// While it exists, the floating-point arithmetic of this thread reads and writes 0 in place of
/// subnormal numbers, those below 1.2e-38 (FTZ and DAZ of MXCSR, FZ of FPCR). Intel processors take
/// about 150 cycles for an operation with a subnormal number ("Intel 64 and IA-32 Architectures
/// Optimization Reference Manual", floating-point assists), and saturated gates and the moments of
/// Adam for rare words have many. A local variable. Threads of a pool compute in the mode of the
/// thread that calls them.
class FlushSubnormals {
 public:
  FlushSubnormals() : before_(control()) {
    if (!is_on(before_)) set_control(before_ | flags);
  }
  ~FlushSubnormals() {
    if (!is_on(before_)) set_control(before_);
  }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

  /// The register that holds the mode of a thread.
#if defined(__SSE__)
  using Control = unsigned;
  static constexpr Control flags = 0x8040;  // FTZ, DAZ
  static Control control() {
    return _mm_getcsr();
  }
  static void set_control(Control to) {
    _mm_setcsr(to);
  }
#elif defined(__aarch64__)
  using Control = std::uint64_t;
  static constexpr Control flags = Control{1} << 24;  // FZ
  static Control control() {
    Control now;
    asm volatile("mrs %0, fpcr" : "=r"(now));
    return now;
  }
  static void set_control(Control to) {
    asm volatile("msr fpcr, %0" : : "r"(to));
  }
#else
  using Control = unsigned;
  static constexpr Control flags = 0;
  static Control control() {
    return 0;
  }
  static void set_control(Control) {}
#endif

 private:
  static bool is_on(Control control) {
    return (control & flags) == flags;
  }

  Control before_;
};

}  // namespace nmt
