#pragma once

#include "tensor/cuda_device.h"

#include <memory>
#include <vector>

namespace nmt {

/// Times of work on a CUDA device by events in its stream, as the device sees them: the host's own
/// time does not count.
class CudaTimer {
 public:
  /// The device outlives the timer.
  explicit CudaTimer(CudaDevice& device);
  ~CudaTimer();
  CudaTimer(const CudaTimer&) = delete;
  CudaTimer& operator=(const CudaTimer&) = delete;

  /// Marks the place in the stream where the work asked for so far ends.
  void mark();
  /// Seconds from each mark to the next, one less than there were marks; waits for the last and
  /// forgets them all.
  std::vector<double> intervals();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nmt
