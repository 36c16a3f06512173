#include "cuda/runtime/check.h"
#include "cuda/runtime/graph.h"
#include "cuda/runtime/memory.h"
#include "cuda/runtime/state.h"

#include <map>
#include <mutex>
#include <utility>

namespace nmt::cuda {

std::size_t raise_shared(int device, const void* kernel, std::size_t bytes) {
  static std::mutex mutex;
  static std::map<std::pair<int, const void*>, std::size_t> limits;
  const std::lock_guard lock(mutex);
  std::size_t& limit = limits[{device, kernel}];
  if (bytes > limit) {
    NMT_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(bytes)));
    limit = bytes;
  }
  return limit;
}

Workspace::~Workspace() {
  if (data_) cudaFree(data_);
}

void* Workspace::get(CudaDevice::State& state, std::size_t bytes) {
  if (bytes > size_) {
    if (state.recording) state.recording->on_memory_change();
    // Queued kernels may still use the old memory.
    wait_for_stream(state);
    if (data_ && state.before_free) state.before_free();
    if (data_) NMT_CUDA_CHECK(cudaFree(data_));
    data_ = nullptr;
    size_ = 0;
    data_ = allocate(state, bytes);
    if (!data_) throw_out_of_memory(state, bytes);
    size_ = bytes;
  }
  return data_;
}

unsigned* barrier_counters(const Cuda& cuda) {
  CudaDevice::State& state = state_of(cuda);
  constexpr std::size_t bytes = max_counters * counter_stride * sizeof(unsigned);
  const bool is_new = state.counters.size() == 0;
  auto* const counters = static_cast<unsigned*>(state.counters.get(state, bytes));
  // Once, in no graph: new memory has ended the capture, if there was one.
  if (is_new) {
    NMT_CUDA_CHECK(cudaMemsetAsync(counters, 0, bytes, state.stream));
    wait_for_stream(state);  // a graph in another stream may be next
  }
  return counters;
}

}  // namespace nmt::cuda
