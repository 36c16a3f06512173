#pragma once

// Runs CUDA kernels as host code, block by block, with one fiber per thread. It detects the
// following faults and throws nmt::Error from the launch with a message that names the thread:
// - a barrier that not all threads of the block reach, or that they reach at different places;
// - a deadlock of threads;
// - a warp operation whose mask names a lane that does not take part, or that reads such a lane;
// - more threads or shared memory than a device has or than the kernel has opted in to;
// - a barrier of blocks (persistent/blocks_barrier.h) that not all threads or blocks
//   reach, and one outside a cooperative launch, whose blocks are all alive at the same time;
// - an operation of tensor cores that the lanes of a warp do not make together.
// Graphs are captured and run by stream.cpp, which refuses the calls that a driver refuses.
// Shared memory is new in every block, exactly as large as declared, and filled with NaN, as is new
// device memory. Kernels are compiled with the hooks of memory/memory_check.cpp, which find
// accesses out of bounds, including those of the host to device memory, and races: two threads
// access one location, one of them writing, without a barrier in between. Those of undefined.cpp
// find indices beyond local arrays. A build with sanitizers has no hooks in kernels;
// AddressSanitizer finds accesses of the host to device memory there.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

struct dim3;
enum cudaError_t : int;

namespace nmt {
struct Guard;
}

namespace nmt::emulator {

constexpr int max_threads = 1024, warp_size = 32;
constexpr std::size_t max_shared = 227 * 1024;  ///< of compute capability 9.0

constexpr std::size_t max_resident_threads = 2048, shared_per_multiprocessor = 228 * 1024;

/// Runs thread(data) as every thread of every block; `cooperative`: all blocks are alive at once.
cudaError_t run(const dim3& grid, const dim3& block, std::size_t shared, bool cooperative,
                void (*thread)(void*), void* data);
/// What a driver checks when a kernel is launched or captured: its dynamic shared memory, which is
/// at most that of shared_limit().
cudaError_t check_launch(const void* kernel, std::size_t shared);
/// Dynamic shared memory that a kernel may have on the current device: 48 KB without its fixed one,
/// or what cudaFuncSetAttribute has last allowed.
std::size_t shared_limit(const void* kernel);
/// The fixed shared memory of a kernel, as far as its blocks have declared it.
std::size_t fixed_shared(const void* kernel);
/// A block has declared so many bytes; returns the largest number so far.
std::size_t note_fixed_shared(const void* kernel, std::size_t bytes);
/// Multiprocessors of the device.
int multiprocessors();
/// Blocks of a kernel that a multiprocessor holds at a time; `shared`: the dynamic shared memory.
int resident_blocks(const void* kernel, std::size_t threads, std::size_t shared);

void barrier(std::source_location at);
void warp_barrier(unsigned mask, std::source_location at);
unsigned ballot(unsigned mask, bool predicate, std::source_location at);
/// A barrier of the `count` blocks of a cooperative launch that name the same counter; one of them
/// leads.
void blocks_barrier(const void* counter, unsigned count, bool leads, std::source_location at);

// ---- tensor cores (mma.h) ----

/// A lane's part of a product of tiles, 16 x 16 by 16 x 8: sum += a b.
struct MatrixOperation {
  const unsigned* a = nullptr;  ///< 4 pairs of bfloat16
  const unsigned* b = nullptr;  ///< 2 pairs
  float* sum = nullptr;         ///< 4 numbers
};
void matrix_operation(const MatrixOperation& operation, std::source_location at);

enum class Shuffle { from, up, down, exclusive_or };
std::uint64_t shuffle_bits(unsigned mask, std::uint64_t bits, Shuffle kind, int argument, int width,
                           std::source_location at);
template <class T>
T shuffle(unsigned mask, T value, Shuffle kind, int argument, int width, std::source_location at) {
  static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = shuffle_bits(mask, bits, kind, argument, width, at);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

/// Calls that fail on purpose: `good` succeed, then `failing` find no memory.
struct Planted {
  int good = 0, failing = 0;
  bool fails() {
    if (failing == 0) return false;
    const bool succeeds = good > 0;
    --(succeeds ? good : failing);
    return !succeeds;
  }
};

/// What tests count, and plant.
struct Counters {
  int failing_allocations = 0;                      ///< the next so many find no memory
  Planted launches;                                 ///< of kernels, also where they are captured
  Planted instantiations, uploads, graph_launches;  ///< of graphs
  /// Copies, launches, waits and questions about memory fail, as after a fault of a kernel.
  bool lost = false;
  std::int64_t launches_until_loss = -1;  ///< initially NMT_EMULATED_LOSS; -1: it is never lost
  /// Streams do their work as late as a device may: when the host or another stream waits for it.
  /// Initially as NMT_EMULATED_STREAMS=late says.
  bool late_streams = false;
  std::int64_t waits = 0;  ///< of the host for the device
  /// Graphs destroyed before the host saw that their last launch was over.
  std::int64_t destroyed_while_running = 0;
  /// Inputs of products in bfloat16 whose rows are not a multiple of 16 bytes apart.
  std::int64_t unaligned_operands = 0;
  std::int64_t accesses = 0;  ///< of kernels, but to their stacks; 0 without hooks
};
Counters& counters();

/// Of arenas in device memory: what an arena forbids, no kernel accesses that runs at its launch.
/// Later ones, those of graphs too, are not checked: the arena may have changed before they run.
const Guard& memory_guard();

/// The block's shared variable with this key.
void* shared_memory(const void* key, std::size_t bytes);
template <class Key>
inline constexpr char key_of = 0;
template <class T, class Key>
T& shared(Key) {
  return *static_cast<T*>(shared_memory(&key_of<Key>, sizeof(T)));
}
void* dynamic_shared();

}  // namespace nmt::emulator
