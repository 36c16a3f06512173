#pragma once

#include "config/precision.h"
#include "kernels/backend.h"
#include "tensor/arena.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace nmt {

/// What has become of a device's recurring work.
struct GraphCounts {
  std::int64_t plain = 0;     ///< done call by call
  std::int64_t recorded = 0;  ///< captured and made a graph
  std::int64_t updated = 0;   ///< captured, and the graph that was there got its values
  std::int64_t replayed = 0;  ///< one launch of a graph, nothing captured
  std::int64_t changed = 0;   ///< kernels of those that got new arguments
  std::int64_t misfits = 0;   ///< had other calls than the key's graph
  std::int64_t held = 0;      ///< graphs now
  std::int64_t nodes = 0;     ///< calls in them
};

/// One CUDA device, a stream on it and what the kernels share there: the products' library, a
/// scratch space, a place for faults. All work of one CudaDevice runs in the order it was asked
/// for. For one thread.
class CudaDevice {
 public:
  /// Errors (usage): this build has no CUDA backend; no driver, or one older than the toolkit's; no
  /// such device; a device older than the kernels were built for. `precision`: of its products'
  /// inputs, not int8. bfloat16 is also how it packs weights.
  explicit CudaDevice(int index = 0, Precision precision = Precision::float32);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  /// How many devices there are; 0, and the reason in `why`, where none can be used. Never fails.
  static int count(std::string& why);

  int index() const;
  /// "NVIDIA H200, compute capability 9.0"
  const std::string& name() const;
  Cuda handle() { return {this}; }

  struct Memory {
    std::size_t free = 0, total = 0;
  };
  Memory memory() const;
  /// Where an Arena of this device takes its chunks. Its refusal, OutOfMemory, says what was asked
  /// for, what is free, what to lower.
  std::unique_ptr<MemorySource> memory_source();

  /// Copies in stream order. Host memory may be reused on return; from_device() waits for the copy.
  void to_device(void* device, const void* host, std::size_t bytes);
  void from_device(void* host, const void* device, std::size_t bytes);
  void copy(void* to, const void* from, std::size_t bytes);
  void clear(void* data, std::size_t bytes);  ///< to zeros
  /// Waits for everything asked for so far. Error: what a kernel found wrong since the last time.
  void synchronize();
  /// How often the host has waited for the device.
  std::int64_t waits() const;

  /// Does work that may recur. Where it has been done before under this key it becomes one CUDA
  /// graph, and from then on the host's calls are compared with the graph's instead of being made,
  /// and one launch does it all (cuda/runtime/graph.h). Work of one key may differ in every
  /// respect: that costs time alone. It is a function that may be run again after it has run to its
  /// end and nothing of it was done on the device: it queues work here, and does nothing else that
  /// lasts. Work that reads from the device is never a graph.
  void repeat(std::span<const std::int64_t> key, const std::function<void()>& work);
  /// Without them repeat() just does its work. On at first.
  void set_graphs(bool on);
  GraphCounts graph_counts() const;

  // Two branches of work, as Branches has them (tensor/branches.h). False: there are branches
  // already.
  bool fork();
  void second_branch();
  void join();
  void abandon_branches() noexcept;

  struct State;  // cuda/runtime/state.h
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace nmt
