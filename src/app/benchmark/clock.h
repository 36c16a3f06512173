#pragma once

#include "app/compute.h"

#include <memory>

namespace nmt::app::bench {

/// Seconds of work on a device.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual void start() = 0;
  virtual double stop() = 0;  ///< seconds since start(); everything asked for in between is done
  virtual const char* name() const = 0;
  /// CUDA: events. CPU: of one thread the processor's time, so that what others do on the machine
  /// does not count; of several the clock's.
  static std::unique_ptr<Clock> of(Compute& compute);
};

/// Wall time in seconds.
double now();

}  // namespace nmt::app::bench
