#pragma once

#include "app/benchmark/clock.h"
#include "app/benchmark/result.h"
#include "app/compute.h"

#include <memory>
#include <vector>

namespace nmt::app::bench {

/// Measures what the device can do, on the threads and by the clock of the benchmark.
///   flops   CPU: independent multiply-adds in registers on all threads. CUDA: a product of 4096 x
///   4096 x 4096. copied  bytes read and written a second, between buffers that are rotated past
///   the cache read    CPU: bytes a second of the fastest of three summing loops over the same
///   buffers. CUDA: as copied, since no kernel only reads
/// On the CPU the processor's speed changes with what others do, so that a row measures them anew.
class BoundsMeter {
 public:
  /// quick: small buffers, for tests.
  BoundsMeter(Compute& compute, Clock& clock, bool quick);
  Bounds measure();
  /// Bytes that buffers must have together so that none is still in a cache when its turn comes
  /// again.
  std::size_t rotation() const { return rotation_; }

 private:
  double flops();
  double copied();
  double read();

  Compute& compute_;
  Clock& clock_;
  bool quick_;
  std::size_t rotation_;
  std::unique_ptr<Arena> arena_;
  Tensor from_, to_;
  Bounds device_;  // CUDA: measured once
};

}  // namespace nmt::app::bench
