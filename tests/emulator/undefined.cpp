// What a kernel computes although C++ does not define it. g++ -fsanitize=alignment,
// bounds,shift,integer-divide-by-zero calls a function where it finds that; the functions are
// defined here, and no sanitizer is linked. The names and the first argument are those of UBSan's
// runtime (LLVM compiler-rt, ubsan_handlers.h).

#include "running.h"

#include <cstdint>
#include <cstdlib>

#include <fmt/format.h>

#if defined(NMT_EMULATOR_HOOKS)

namespace nmt::emulator {
namespace {

/// The first member of the data that the compiler passes to the handlers.
struct Location {
  const char* file;
  std::uint32_t line, column;
};

void undefined(const void* data, const char* what) {
  const auto& location = *static_cast<const Location*>(data);
  const std::string message = fmt::format("{} at {}:{}", what, location.file, location.line);
  if (running.in_kernel) abort_launch(fmt::format("{}: {}", thread_name(), message));
  fmt::print(stderr, "emulator: host code: {}\n", message);
  std::abort();
}

}  // namespace
}  // namespace nmt::emulator

using nmt::emulator::undefined;

extern "C" {
void __ubsan_handle_type_mismatch_v1(void* data, void*) {
  undefined(data, "an access at an address that is not a multiple of its type's alignment");
}
void __ubsan_handle_out_of_bounds(void* data, void*) {
  undefined(data, "an index that its array does not have");
}
void __ubsan_handle_shift_out_of_bounds(void* data, void*, void*) {
  undefined(data, "a shift by a negative number or by too many bits");
}
void __ubsan_handle_divrem_overflow(void* data, void*, void*) {
  undefined(data, "a division by zero");
}
}

#endif
