#pragma once

#include "cuda/runtime/state.h"

#include <array>
#include <cstddef>

namespace nmt::cuda {

/// Pinned memory that small uploads pass through, so that the host never waits for the device to
/// take them: the driver may wait when it copies from ordinary memory. A ring of two halves; a half
/// is used again when its copies have been made.
class Staging {
 public:
  /// Copies of more bytes are left to the driver.
  static constexpr std::size_t most = std::size_t{1} << 20;

  explicit Staging(CudaDevice::State& state);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// Queues a copy of at most `most` bytes; host memory may be reused on return.
  void copy(void* device, const void* host, std::size_t bytes);

 private:
  static constexpr std::size_t half = 4 * most;
  cudaStream_t stream_;
  char* data_ = nullptr;
  std::array<cudaEvent_t, 2> done_{};  // recorded behind a half's last copy
  std::size_t at_ = 0;                 // in the half that is being filled
  std::size_t current_ = 0;
};

}  // namespace nmt::cuda
