#pragma once

// A fuzz target is a file <name>.cpp with `void nmt::fuzz::<name>(std::string_view bytes)` and
// NMT_FUZZ_TARGET(<name>), a line in targets.def, and seeds in seeds/<name>/. It passes the bytes
// to a reader and catches only nmt::Error, the expected response to bad input. Everything else (a
// crash, a sanitizer report, another exception) is a failure. fuzz_test.cpp runs every target on
// its seeds and mutations of them; with NMT_BUILD_FUZZERS each target becomes a libFuzzer program
// fuzz_<name>.

#include "core/error.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#if defined(NMT_FUZZER)
#define NMT_FUZZ_TARGET(name)                                                         \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);  \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    nmt::fuzz::name(std::string_view(reinterpret_cast<const char*>(data), size));     \
    return 0;                                                                         \
  }
#else
#define NMT_FUZZ_TARGET(name)
#endif

namespace nmt::fuzz {

#define NMT_FUZZ(name) void name(std::string_view bytes);
#include "tests/fuzz/targets.def"
#undef NMT_FUZZ

/// Calls the reader; an error message must be one line.
template <class Reader>
void read(Reader&& reader) {
  try {
    reader();
  } catch (const Error& error) {
    if (error.what()[0] == '\0' ||
        std::string_view(error.what()).find('\n') != std::string_view::npos)
      throw std::logic_error("an error message has more than one line");
  }
}

}  // namespace nmt::fuzz
