#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>

#include "nmt/core/thread_pool.h"
#include "nmt/kernels/peak.h"

// What the tables of nmt-bench share.

namespace nmt::tools::bench {

inline double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Of one thread, the processor's time is taken: what others do on the machine does not count. Of several, the clock's.
inline bool processor_time = false;
inline double measured_now() {
  if (!processor_time) return now();
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Seconds of one run: the shortest of many samples within `budget` seconds, as other programs on the machine only ever lengthen
/// one. A sample is as many runs as make a millisecond, or the clock's own steps would be taken for speed.
template <class Body>
double shortest(Body&& body, double budget = 0.12) {
  body();
  int repeats = 1;
  double best = 1e30;
  const double start = now();
  for (int samples = 0; samples < 4 || now() - start < budget; ++samples) {
    const double begin = measured_now();
    for (int i = 0; i < repeats; ++i) body();
    const double seconds = measured_now() - begin;
    if (seconds < 1e-3) {
      repeats *= 2;
      samples = 0;
    } else {
      best = std::min(best, seconds / repeats);
    }
  }
  return best;
}

/// Floating-point operations a second of independent multiply-adds in registers, on all workers at once.
inline double peak_flops(ThreadPool& pool) {
  std::int64_t flops = 0;
  const double seconds = shortest([&] {
    pool.run([&](int worker) {
      const std::int64_t done = kernels::multiply_add_loop(20000);
      if (worker == 0) flops = done * pool.size();
    });
  });
  return static_cast<double>(flops) / seconds;
}

}  // namespace nmt::tools::bench
