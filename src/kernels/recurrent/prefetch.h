#pragma once

#include <cstdint>

// Loads ahead for loops with much arithmetic per row. A processor loads ahead by itself within a
// page (4 KB), and as far as its window of instructions reaches: such a loop would wait for memory
// at every plane of every row. Loops that only copy or add gain nothing.

namespace nmt::kernels {
namespace {

/// Floats of a block: a loop asks for a block of the next row, then computes the block of this one.
constexpr std::int64_t prefetch_block = 64;

/// Asks for `n` numbers to be read or written soon. Any address is allowed.
template <class T>
[[gnu::always_inline]] inline void prefetch(const T* from, std::int64_t n) {
  constexpr std::int64_t line = 64 / sizeof(T);
  for (std::int64_t i = 0; i < n; i += line) __builtin_prefetch(from + i);
}
template <class T>
[[gnu::always_inline]] inline void prefetch_output(T* to, std::int64_t n) {
  constexpr std::int64_t line = 64 / sizeof(T);
  for (std::int64_t i = 0; i < n; i += line) __builtin_prefetch(to + i, 1);
}

/// body(begin, end) for the blocks of [first, end).
template <class Body>
[[gnu::always_inline]] inline void each_block(std::int64_t first, std::int64_t end, Body&& body) {
  for (std::int64_t begin = first; begin < end; begin += prefetch_block)
    body(begin, begin + prefetch_block < end ? begin + prefetch_block : end);
}

}  // namespace
}  // namespace nmt::kernels
