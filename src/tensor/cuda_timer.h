#pragma once

#include "tensor/cuda_device.h"

#include <memory>
#include <vector>

namespace nmt {

/// Measures work on a CUDA device by events in its stream: device time, without the host's.
class CudaTimer {
 public:
  /// The device outlives the timer.
  explicit CudaTimer(CudaDevice& device);
  ~CudaTimer();
  CudaTimer(const CudaTimer&) = delete;
  CudaTimer& operator=(const CudaTimer&) = delete;

  /// Records an event behind all work queued so far.
  void mark();
  /// Seconds from each mark to the next, one fewer than there are marks. Waits for the last mark
  /// and clears all of them.
  std::vector<double> intervals();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nmt
