#include "app/benchmark/clock.h"

#include "tensor/cuda_timer.h"

#include <chrono>

#include <time.h>

namespace nmt::app::bench {
namespace {

class WallClock : public Clock {
 public:
  void start() override { begin_ = now(); }
  double stop() override { return now() - begin_; }
  const char* name() const override { return "wall time"; }

 private:
  double begin_ = 0;
};

class ProcessorClock : public Clock {
 public:
  void start() override { begin_ = used(); }
  double stop() override { return used() - begin_; }
  const char* name() const override { return "CPU time of the one thread"; }

 private:
  static double used() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }
  double begin_ = 0;
};

class EventClock : public Clock {
 public:
  explicit EventClock(CudaDevice& device) : timer_(device) {}
  void start() override { timer_.mark(); }
  double stop() override {
    timer_.mark();
    return timer_.intervals().at(0);
  }
  const char* name() const override { return "CUDA events"; }

 private:
  CudaTimer timer_;
};

}  // namespace

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::unique_ptr<Clock> Clock::of(Compute& compute) {
  if (CudaDevice* device = compute.cuda()) return std::make_unique<EventClock>(*device);
  if (compute.pool().size() == 1) return std::make_unique<ProcessorClock>();
  return std::make_unique<WallClock>();
}

}  // namespace nmt::app::bench
