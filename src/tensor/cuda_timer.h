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

/// Marks the work that is queued during its life for a profiler that waits for a mark (`ncu
/// --profile-from-start off`). Waits for the device at both ends.
class ProfiledRange {
 public:
  explicit ProfiledRange(CudaDevice& device);
  ~ProfiledRange();
  ProfiledRange(const ProfiledRange&) = delete;
  ProfiledRange& operator=(const ProfiledRange&) = delete;

 private:
  CudaDevice& device_;
};

}  // namespace nmt
