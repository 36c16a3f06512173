#pragma once

#include "app/compute/compute.h"

#include <memory>

namespace nmt::app::bench {

/// Measures the time of work on a device.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual void start() = 0;
  virtual double stop() = 0;  ///< seconds since start(), after all work in between has finished
  virtual const char* name() const = 0;
  /// CUDA: events. CPU: CPU time with one thread, so that other load does not count; wall time with
  /// several.
  static std::unique_ptr<Clock> of(Compute& compute);
};

/// Wall time in seconds.
double now();

}  // namespace nmt::app::bench
