#include "cuda/runtime/check.h"
#include "cuda/runtime/state.h"

#include <chrono>
#include <thread>

namespace nmt::cuda {

void wait_for(CudaDevice::State& state, cudaEvent_t event) {
  if (!state.while_waiting) {
    NMT_CUDA_CHECK(cudaEventSynchronize(event));
    return;
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (;;) {
    const cudaError_t status = cudaEventQuery(event);
    if (status == cudaSuccess) return;
    if (status != cudaErrorNotReady) check(status, "cudaEventQuery");
    cudaGetLastError();  // clears "not ready"
    const double waited = std::chrono::duration<double>(Clock::now() - begin).count();
    state.while_waiting(waited);
    if (waited > 1e-4) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void wait_for_stream(CudaDevice::State& state) {
  if (!state.while_waiting) {
    NMT_CUDA_CHECK(cudaStreamSynchronize(state.stream));
    return;
  }
  if (!state.reached)
    NMT_CUDA_CHECK(cudaEventCreateWithFlags(&state.reached, cudaEventDisableTiming));
  NMT_CUDA_CHECK(cudaEventRecord(state.reached, state.stream));
  wait_for(state, state.reached);
}

}  // namespace nmt::cuda
