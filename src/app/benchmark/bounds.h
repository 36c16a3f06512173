#pragma once

#include "app/benchmark/clock.h"
#include "app/benchmark/result.h"
#include "app/compute/compute.h"

#include <memory>
#include <vector>

namespace nmt::app::bench {

/// Measures the peak performance of the device, with the threads and the clock of the benchmark.
///   flops   CPU: FMA peak in registers on all threads. CUDA: a GEMM of 4096 x 4096 x 4096.
///   copied  copy bandwidth, bytes read and written per second, between buffers larger than the
///           caches
///   read    CPU: read bandwidth, the fastest of three summing loops over the same buffers. CUDA:
///           as copied, since no kernel only reads.
/// On the CPU the clock frequency varies with other load, so every row measures them again.
class BoundsMeter {
 public:
  /// quick: small buffers, for tests.
  BoundsMeter(Compute& compute, Clock& clock, bool quick);
  Bounds measure();
  /// Total size of rotated buffers such that none is still in a cache when it is reused.
  std::size_t rotation() const { return rotation_; }

 private:
  void make_buffers();  ///< at the first measurement; a list of rows needs none
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
