#pragma once

#include <cstddef>
#include <cstdint>

#include <kernels/handles.h>

namespace nmt::test {

// Kernels with one planted fault each, and their correct versions. Pointers are to device memory.

/// out[i] = x[n-1-i] through shared memory, n the threads of the one block; without the barrier
/// when faulty.
void reverse(const Cuda& cuda, bool faulty, int n, const float* x, float* out);
/// The same through 48 bytes more than launch() gives.
void reverse_past_shared(const Cuda& cuda, int n, const float* x, float* out);
/// out[i] = x[i] for i < n; one element too many when faulty.
void copy(const Cuda& cuda, bool faulty, int n, const float* x, float* out);
/// Only the first threads reach the barrier.
void divergent_barrier(const Cuda& cuda, int threads, int reaching);
/// The threads wait at two different barriers.
void two_barriers(const Cuda& cuda, int threads);
/// Half of a warp shuffles with a mask of the whole.
void partial_shuffle(const Cuda& cuda);
/// A lane reads another that its mask leaves out.
void shuffle_outside_mask(const Cuda& cuda, float* out);
/// Two blocks write one element; with atomics when not faulty.
void two_writers(const Cuda& cuda, bool faulty, float* out);
/// Reads uninitialized shared memory.
void read_unwritten(const Cuda& cuda, float* out);
/// A neighbor's value through shared memory, with __syncwarp() alone; right within a warp.
void warp_neighbor(const Cuda& cuda, int threads, float* out);
/// A block of three threads: out[0] = x[0] after two barriers, read by all of them; then, in a
/// launch of its own, x[0] += 1 without one.
void read_late_then_change(const Cuda& cuda, float* x, float* out);
/// A cooperative launch of `blocks` blocks: each adds 1 to its element of x at every step and, when
/// all have done so, adds the element of the next block to its sum.
enum class MeetingFault {
  none,
  no_barrier,       ///< the blocks do not wait for each other
  block_barrier,    ///< only the threads of a block wait
  missing_block,    ///< the last block leaves before
  two_leaders,      ///< two blocks lead
  wrong_count,      ///< a block waits for more blocks than there are
  missing_thread,   ///< half of the threads of a block do not wait
  write_too_early,  ///< no second barrier before the elements change
};
void meet(const Cuda& cuda, MeetingFault fault, int blocks, unsigned* counter, float* x,
          float* sums);
/// A barrier of blocks in an ordinary launch.
void meet_apart(const Cuda& cuda, unsigned* counter, float* x);
/// Two sets of two blocks: each block reads what its neighbor wrote before their barrier, or, when
/// faulty, what a block of the other set wrote.
void meet_in_pairs(const Cuda& cuda, bool faulty, unsigned* counters, float* x, float* out);
/// Every block writes its element and, at once, one that all blocks have read before a barrier.
void write_after_readers(const Cuda& cuda, bool faulty, int blocks, unsigned* counter, float* x,
                         float* out);

/// c = a b, 16 x 8, by tensor cores: a [16][16] by rows, b [8][16] by columns, in bfloat16.
enum class TileFault {
  none,
  half_warp,  ///< only half of the lanes compute
  layout      ///< takes the second pair of a lane for one of the same row
};
void multiply_tile(const Cuda& cuda, TileFault fault, const unsigned short* a,
                   const unsigned short* b, float* c);
/// A kernel that writes the last of `bytes` bytes of dynamic shared memory.
void limited_kernel(std::size_t bytes);
/// The same with a kernel of launch().
void use_shared(const Cuda& cuda, std::size_t bytes);
/// Blocks of that kernel that the device holds at once.
std::int64_t shared_blocks(const Cuda& cuda, std::size_t bytes);
/// A kernel with 30 KB of fixed shared memory and `bytes` bytes of dynamic one: a block, or blocks
/// of a cooperative launch, and how many of them the device holds at once.
void use_fixed(const Cuda& cuda, std::size_t bytes);
void use_fixed_together(const Cuda& cuda, unsigned blocks, std::size_t bytes);
std::int64_t fixed_blocks(const Cuda& cuda, std::size_t bytes);
/// to[0] = x[0] + value, with an argument whose padding has bytes of value `padding`.
void add_padded(const Cuda& cuda, int padding, const float* x, float value, float* to);
/// to[0] += the sum of `count` times x[0], listed in an argument that has an array of structs and
/// padding after it; `count` at most 5.
void add_listed(const Cuda& cuda, int count, const float* x, float* to);
/// out[0] = x[1], one of four numbers that a thread has written, and other threads its bytes.
enum class WordFault {
  none,
  word_then_byte,  ///< no barrier between the two
  byte_then_word   ///< no barrier before x[1] is read
};
void share_word(const Cuda& cuda, WordFault fault, float* x, float* out);
/// Reads a number at x + 2 bytes.
void read_askew(const Cuda& cuda, const float* x, float* out);
/// out[0] = x[first] + x[first + 3], from one load of 16 bytes.
void read_vector(const Cuda& cuda, int first, const float* x, float* out);
/// out[0] = element i of a local array of four.
void index_local(const Cuda& cuda, int i, float* out);
/// out[0] = 1 / divisor + (1 << bits).
void divide_and_shift(const Cuda& cuda, int divisor, int bits, float* out);
/// Host code that reads device memory.
float read_on_host(const float* x);

}  // namespace nmt::test
