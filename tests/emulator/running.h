#pragma once

// The state of the running thread and of memory, shared by the emulator's sources.

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace nmt::emulator {

struct Region {
  const char* begin = nullptr;
  const char* end = nullptr;
  bool has(const void* p) const { return p >= begin && p < end; }
  bool has(const void* p, std::size_t bytes) const {
    return p >= begin && static_cast<const char*>(p) + bytes <= end;
  }
  std::size_t size() const { return static_cast<std::size_t>(end - begin); }
};

/// The running thread.
struct Running {
  /// This thread of the program uses a device: it has set it or asked for it. Others are not
  /// checked.
  bool has_device = false;
  int device = 0;  ///< the current one
  bool in_kernel = false;
  std::uint32_t launch = 0;  ///< number of the launch, among those of all threads of the program
  std::uint32_t block = 0;   ///< number of the block in the grid
  /// In a cooperative launch, for each of its blocks: what it did in epochs below this number is
  /// ordered before what the running block does. Else null.
  const std::vector<std::uint32_t>* seen = nullptr;
  /// Barriers of blocks so far; the last one that the running block has passed; and the number of
  /// the blocks with which it meets, 0 before its first.
  std::uint32_t meetings = 0, met = 0, set = 0;
  std::uint32_t thread = 0;       ///< number of the thread in the block
  std::uint32_t block_epoch = 0;  ///< barriers of the block so far
  std::uint32_t warp_epoch =
      0;  ///< barriers of the thread's warp so far, those of the block among them
  Region stack;
  bool is_late = false;  ///< the launch runs after the call that made it
};
extern constinit thread_local Running running;

/// "thread (3,0,0) of block (0,1,0)"
std::string thread_name();

/// Ends the launch with an error; called by a kernel's thread.
[[noreturn]] void abort_launch(std::string message);

/// Shared memory of the running block.
struct SharedMemory {
  const void* key;
  Region region;
  std::unique_ptr<char, decltype(&std::free)> data;
};

/// Blocks of so many threads and bytes of shared memory that a multiprocessor holds at a time.
int blocks_with(std::size_t threads, std::size_t shared);
/// Whether cudaFuncSetAttribute has allowed the kernel more shared memory than usual.
bool has_opted_in(const void* kernel);
const std::vector<SharedMemory>& shared_memories();

// ---- device memory (memory/device_memory.cpp) ----

/// The allocation that holds p, or an empty region.
Region device_region(const void* p);
/// Likewise of pinned host memory.
Region pinned_region(const void* p);
/// Device memory may be accessed only while kernels and copies run.
void open_device_memory();
void close_device_memory();
struct OpenDeviceMemory {
  OpenDeviceMemory() { open_device_memory(); }
  ~OpenDeviceMemory() { close_device_memory(); }
};

// ---- streams and graphs (stream.cpp) ----

/// Whether the stream has been made and not destroyed.
bool exists(cudaStream_t stream);
/// Runs a call that is not a kernel, or defers it.
cudaError_t submit(cudaStream_t stream, const char* kind, std::function<cudaError_t()> call);
/// Defers such a call. In a capture it becomes a node of this kind; in a late stream, or behind a
/// call that is not ready, it waits for its turn.
cudaError_t defer(cudaStream_t stream, const char* kind, std::function<cudaError_t()> call);
/// Runs all work that waits in streams, or in one; the first error.
cudaError_t finish_streams();
cudaError_t finish_stream(cudaStream_t stream);
/// Calls queued outside captures in late streams, by kind: "kernel", "product", "graph" and others.
std::map<std::string, std::int64_t>& queued_calls();
/// Runs what is ready, as a device does while the host waits for something else.
void advance_streams();
/// Work of another process in the stream: later work waits until `ready` returns true.
void hold_stream(cudaStream_t stream, std::function<bool()> ready);
/// Called by functions that are not allowed during a capture: invalidates the capture. False when
/// no capture is active.
bool breaks_captures();

// ---- races and bounds (memory/memory_check.cpp) ----

/// An atomic access of the running thread.
void note_atomic(const void* address, std::size_t bytes);
/// Forgets the accesses to memory that is allocated or freed.
void forget(const Region& region);

}  // namespace nmt::emulator
