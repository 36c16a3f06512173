#include "cuda/runtime/check.h"
#include "cuda/runtime/graph.h"
#include "cuda/runtime/state.h"
#include "tensor/cuda_timer.h"

#include <cuda_profiler_api.h>

namespace nmt {

struct CudaTimer::State {
  explicit State(CudaDevice& the_device) : device(the_device) {}
  CudaDevice& device;
  std::vector<cudaEvent_t> events;  // reused
  std::size_t marks = 0;
};

CudaTimer::CudaTimer(CudaDevice& device) : state_(std::make_unique<State>(device)) {}

CudaTimer::~CudaTimer() {
  for (const cudaEvent_t event : state_->events) {
    cudaEventDestroy(event);
  }
}

void CudaTimer::mark() {
  State& s = *state_;
  if (cuda::GraphCache* const recording = s.device.state().recording)
    recording->forbid_capture("a mark of a timer");
  cuda::make_current(s.device.index());
  if (s.marks == s.events.size()) {
    s.events.push_back(nullptr);
    NMT_CUDA_CHECK(cudaEventCreate(&s.events.back()));
  }
  NMT_CUDA_CHECK(cudaEventRecord(s.events[s.marks++], s.device.state().stream));
}

std::vector<double> CudaTimer::intervals() {
  State& s = *state_;
  std::vector<double> seconds;
  if (s.marks > 0) NMT_CUDA_CHECK(cudaEventSynchronize(s.events[s.marks - 1]));
  for (std::size_t i = 1; i < s.marks; ++i) {
    float milliseconds = 0;
    NMT_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, s.events[i - 1], s.events[i]));
    seconds.push_back(1e-3 * static_cast<double>(milliseconds));
  }
  s.marks = 0;
  return seconds;
}

ProfiledRange::ProfiledRange(CudaDevice& device) : device_(device) {
  device.synchronize();
  cuda::make_current(device.index());
  NMT_CUDA_CHECK(cudaProfilerStart());
}

ProfiledRange::~ProfiledRange() {
  cudaStreamSynchronize(device_.state().stream);
  cudaProfilerStop();
}

}  // namespace nmt
