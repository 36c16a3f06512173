#pragma once

#include "cuda/runtime/state.h"

#include <array>
#include <cstddef>

namespace nmt::cuda {

/// Pinned memory for small uploads, so that the host does not wait for the device: the driver may
/// wait when it copies from pageable memory. A ring buffer of two halves: a half is reused when its
/// copies are complete.
class Staging {
 public:
  /// Larger copies are left to the driver.
  static constexpr std::size_t max_bytes = std::size_t{1} << 20;

  explicit Staging(CudaDevice::State& state);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Queues a copy of at most max_bytes; host memory may be reused on return.
  void copy(void* device, const void* host, std::size_t bytes);

 private:
  static constexpr std::size_t half = 4 * max_bytes;
  CudaDevice::State& state_;
  cudaStream_t stream_;
  char* data_ = nullptr;
  std::array<cudaEvent_t, 2> done_{};  // recorded after a half's last copy
  std::size_t offset_ = 0;             // offset in the current half
  std::size_t current_ = 0;
};

/// Pinned memory for a small copy to the host; the host queues the copy and waits for it later.
class Download {
 public:
  explicit Download(CudaDevice::State& state);
  ~Download();
  Download(const Download&) = delete;
  Download& operator=(const Download&) = delete;

  void begin(const void* device, std::size_t bytes);
  void finish(void* host, std::size_t bytes);

 private:
  CudaDevice::State& state_;
  void* data_ = nullptr;
  std::size_t pending_ = 0;     // bytes of the copy that has begun
  cudaEvent_t done_ = nullptr;  // recorded after it
};

}  // namespace nmt::cuda
