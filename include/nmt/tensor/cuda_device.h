#pragma once

#include "nmt/config/precision.h"
#include "nmt/kernels/backend.h"
#include "nmt/tensor/arena.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace nmt {

/// One CUDA device, a stream on it and what the kernels share there: the products' library, a scratch space, a place
/// for faults. All work of one CudaDevice runs in the order it was asked for. For one thread.
class CudaDevice {
 public:
  /// Errors (usage): this build has no CUDA backend; no driver, or one older than the toolkit's; no such device; a
  /// device older than the kernels were built for. `precision`: of its products' inputs, not int8. bfloat16 is also how
  /// it packs weights.
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
  /// Where an Arena of this device takes its chunks. Its refusal, OutOfMemory, says what was asked for, what is free, what to lower.
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

  struct State;  // cuda/state.h
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace nmt
