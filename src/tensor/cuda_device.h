#pragma once

#include "config/precision.h"
#include "kernels/handles.h"
#include "tensor/arena.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace nmt {

/// Statistics of a device's recurring work.
struct GraphCounts {
  std::int64_t plain = 0;     ///< runs without a graph
  std::int64_t recorded = 0;  ///< captures that were instantiated
  std::int64_t updated = 0;   ///< captures that updated the existing graph
  std::int64_t replayed = 0;  ///< launches of a graph without a capture
  std::int64_t changed = 0;   ///< kernels in replayed graphs whose arguments changed
  std::int64_t misfits = 0;   ///< runs whose calls differed from the key's graph
  std::int64_t held = 0;      ///< graphs that exist now
  std::int64_t nodes = 0;     ///< their calls
};

/// Whether recurrences of matrix units run as one kernel for all steps, instead of launches for
/// every step (docs/design/cuda-recurrences.md).
enum class PersistentUse {
  off,
  automatic,  ///< where a table says that it is faster
  on          ///< where it is possible
};

/// One CUDA device, a stream on it, and what the kernels share there: the matrix product library,
/// scratch memory and a fault record. All work of one CudaDevice runs in the order of the calls.
/// For one thread.
class CudaDevice {
 public:
  /// `precision`: of the inputs of matrix products, not int8; bfloat16 also packs weights in
  /// bfloat16; none: bfloat16 if the device has it (compute capability 8.0), else float32. Errors
  /// (usage): this build has no CUDA backend; no driver, or one older than the toolkit; no such
  /// device; a device older than the architectures of this build.
  explicit CudaDevice(int index = 0, std::optional<Precision> precision = Precision::float32);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  /// The number of devices; 0, and the reason in `why`, where none can be used. Never fails.
  static int count(std::string& why);
  /// Whether there is such a device and this build has code for it; else the reason in `why`. Never
  /// fails.
  static bool is_usable(int index, std::string& why);

  int index() const;
  Precision precision() const;
  /// "NVIDIA H200, compute capability 9.0"
  const std::string& name() const;
  Cuda handle() { return {this}; }

  struct Memory {
    std::size_t free = 0, total = 0;
  };
  Memory memory() const;
  /// The memory source of an Arena of this device. Its OutOfMemory error says how much was
  /// requested, how much is free, and which options to lower.
  std::unique_ptr<MemorySource> memory_source();

  /// Copies in stream order. Host memory may be reused on return; from_device() waits for the copy.
  void to_device(void* device, const void* host, std::size_t bytes);
  void from_device(void* host, const void* device, std::size_t bytes);
  /// Queues a copy to the host that finish_download() waits for, so that the host can queue more
  /// work in between. At most max_pending_download bytes. It replaces one that has not finished.
  void begin_download(const void* device, std::size_t bytes);
  /// The copy of the last begin_download(), which had as many bytes. Waits for it, not for later
  /// work. Error: a fault that a kernel has reported.
  void finish_download(void* host, std::size_t bytes);
  static constexpr std::size_t max_pending_download = 4096;
  void copy(void* to, const void* from, std::size_t bytes);
  void clear(void* data, std::size_t bytes);  ///< to zeros
  /// Waits for all queued work. Error: a fault that a kernel has reported since the last call.
  void synchronize();
  /// The number of times the host has waited for the device.
  std::int64_t waits() const;

  /// Runs work that may recur. Work that has run before under the same key is captured into a CUDA
  /// graph; from then on the host's calls are only compared with the graph, and one launch replaces
  /// them (cuda/runtime/graph.h). Work under one key may differ in every respect: that only costs
  /// time. The function may be called a second time when nothing of its first call has run on the
  /// device, so it must have no lasting effect except to queue work here. Work that reads from the
  /// device never becomes a graph. What work between graphs throws, this throws. Error (failed):
  /// called from work between graphs.
  void repeat(std::span<const std::int64_t> key, const std::function<void()>& work);
  /// Within the function of repeat(): runs work that no graph may contain, such as a collective of
  /// several processes, in the order of the calls, between the graphs of what is before and after
  /// it. It runs only when the calls before it do, so it may have lasting effects, and it may run
  /// after this call has returned. It may wait for the device. It may end the call of repeat() by
  /// throwing: what comes after it does not run. It must not call repeat(), nor use the arena,
  /// whose free memory the graphs after it may use. `identity` tells it from other work of this
  /// kind. Elsewhere: runs it now.
  void between_graphs(std::span<const std::int64_t> identity, std::function<void()> work);
  /// Calls in all graphs together; a call takes about a kilobyte of device memory.
  static constexpr std::int64_t default_graph_calls = std::int64_t{1} << 20;
  /// Without graphs repeat() just calls its function. Default: on. With more than max_calls, graphs
  /// of keys that recur more often replace others.
  void set_graphs(bool on, std::int64_t max_calls = default_graph_calls);
  GraphCounts graph_counts() const;

  /// Default: off. `max_channels`: of a block, for tests; 0: as many as its shared memory holds.
  void set_persistent(PersistentUse use, std::int64_t max_channels = 0);
  PersistentUse persistent() const;

  /// Whether few long sentences are divided into chunks of steps (cuda/kernels/recurrent/chunks.h,
  /// matrix/scan.h). Not to be changed between a forward pass and its backward pass. Default: on.
  void set_chunks(bool on);

  // The two branches of tensor/branches.h. fork() returns false where branches are open already.
  bool fork();
  void second_branch();
  void join();
  void abandon_branches() noexcept;

  struct State;  // cuda/runtime/state.h
  State& state() { return *state_; }

 private:
  void check_fault();
  std::unique_ptr<State> state_;
};

}  // namespace nmt
