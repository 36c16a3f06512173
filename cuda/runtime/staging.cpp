#include "cuda/runtime/staging.h"

#include "cuda/runtime/check.h"

#include <cstring>

namespace nmt::cuda {
Staging::Staging(CudaDevice::State& state) : state_(state), stream_(state.stream) {
  void* data = nullptr;
  NMT_CUDA_CHECK(cudaHostAlloc(&data, 2 * half, cudaHostAllocDefault));
  data_ = static_cast<char*>(data);
  for (cudaEvent_t& event : done_) {
    NMT_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    NMT_CUDA_CHECK(cudaEventRecord(event, stream_));
  }
}

Staging::~Staging() {
  cudaStreamSynchronize(stream_);
  for (const cudaEvent_t event : done_) cudaEventDestroy(event);
  cudaFreeHost(data_);
}

void Staging::copy(void* device, const void* host, std::size_t bytes) {
  if (offset_ + bytes > half) {
    NMT_CUDA_CHECK(cudaEventRecord(done_[current_], stream_));
    current_ = 1 - current_;
    offset_ = 0;
    wait_for(state_, done_[current_]);
  }
  char* const staged = data_ + current_ * half + offset_;
  std::memcpy(staged, host, bytes);
  NMT_CUDA_CHECK(cudaMemcpyAsync(device, staged, bytes, cudaMemcpyHostToDevice, stream_));
  offset_ += (bytes + 63) / 64 * 64;
}

Download::Download(CudaDevice::State& state) : state_(state) {
  NMT_CUDA_CHECK(cudaHostAlloc(&data_, CudaDevice::max_pending_download, cudaHostAllocDefault));
  NMT_CUDA_CHECK(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming));
}

Download::~Download() {
  cudaStreamSynchronize(state_.stream);
  cudaEventDestroy(done_);
  cudaFreeHost(data_);
}

void Download::begin(const void* device, std::size_t bytes) {
  NMT_CUDA_CHECK(cudaMemcpyAsync(data_, device, bytes, cudaMemcpyDeviceToHost, state_.stream));
  NMT_CUDA_CHECK(cudaEventRecord(done_, state_.stream));
  pending_ = bytes;
}

void Download::finish(void* host, std::size_t bytes) {
  NMT_CHECK(bytes == pending_, "{} bytes of a download of {}", bytes, pending_);
  pending_ = 0;
  wait_for(state_, done_);
  std::memcpy(host, data_, bytes);
}

}  // namespace nmt::cuda
