#pragma once

#include <cstdint>
#include <vector>

namespace nmt::kernels {
namespace {

// What the memory is for.
struct CopiesOfA;
struct BlockOfB;

// Memory of this thread for at least `floats` numbers, aligned to 64 bytes, which the next call
// gets again. It is not on the stack, since a thread of another program, or of Python, may have one
// of 512 KiB. `Use` tells apart what a product needs at the same time.
template <class Use>
float* thread_scratch(std::int64_t floats) {
  struct Line {
    alignas(64) float values[16];
  };
  thread_local std::vector<Line> lines;
  const auto size = static_cast<std::size_t>((floats + 15) / 16);
  if (lines.size() < size) {
    lines.clear();  // nothing is moved to the new memory
    lines.resize(size);
  }
  return lines.data()->values;
}

}  // namespace
}  // namespace nmt::kernels
