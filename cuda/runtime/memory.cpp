#include "cuda/runtime/memory.h"

#include "cuda/runtime/check.h"
#include "cuda/runtime/graph.h"

#include <algorithm>

namespace nmt::cuda {

void* allocate(const CudaDevice::State& state, std::size_t bytes) {
  void* data = nullptr;
  make_current(state.index);
  if (state.recording) state.recording->on_memory_change();
  for (;;) {
    const cudaError_t status = cudaMalloc(&data, bytes);
    if (status != cudaErrorMemoryAllocation) {
      cuda::check(status, "cudaMalloc");
      return data;
    }
    cudaGetLastError();  // clears it
    if (!state.graphs || !state.graphs->release()) return nullptr;
  }
}

CudaDevice::Memory memory_of(const CudaDevice::State& state) {
  CudaDevice::Memory memory;
  make_current(state.index);
  // A capture may not allow the query, and the allocation that follows would abort it anyway.
  if (state.recording) state.recording->on_memory_change();
  NMT_CUDA_CHECK(cudaMemGetInfo(&memory.free, &memory.total));
  return memory;
}

void throw_out_of_memory(const CudaDevice::State& state, std::size_t bytes) {
  constexpr double megabyte = 1024.0 * 1024.0;
  const CudaDevice::Memory memory = memory_of(state);
  throw OutOfMemory(fmt::format(
      "CUDA device {} ({}): out of memory: {:.1f} MB requested, {:.1f} of {:.1f} MB free",
      state.index, state.name, static_cast<double>(bytes) / megabyte,
      static_cast<double>(memory.free) / megabyte, static_cast<double>(memory.total) / megabyte));
}

namespace {

constexpr std::size_t max_reserve = std::size_t{256} << 20;

class DeviceMemory : public MemorySource {
 public:
  explicit DeviceMemory(CudaDevice& device) : device_(device) {}

  // Reserves memory for later allocations by libraries and graphs: an arena would take all of it.
  char* allocate(std::size_t bytes) override {
    for (;;) {
      const CudaDevice::Memory memory = memory_of(device_.state());
      const std::size_t reserve = std::min(max_reserve, memory.total / 128);
      if (bytes <= memory.free && reserve <= memory.free - bytes) break;
      GraphCache* const graphs = device_.state().graphs.get();
      if (!graphs || !graphs->release()) return nullptr;
    }
    return static_cast<char*>(cuda::allocate(device_.state(), bytes));
  }
  // cudaFree waits for the device. Errors cannot be reported here.
  void release(char* data) noexcept override {
    if (device_.state().recording) device_.state().recording->on_memory_change();
    if (device_.state().before_free) device_.state().before_free();
    cudaFree(data);
  }
  [[noreturn]] void refuse(std::size_t bytes) override {
    throw_out_of_memory(device_.state(), bytes);
  }
  Guard guard() const override {
#ifdef NMT_EMULATED_DEVICE
    return emulator::memory_guard();
#else
    return {};
#endif
  }

 private:
  CudaDevice& device_;
};

}  // namespace

std::unique_ptr<MemorySource> memory_source(CudaDevice& device) {
  return std::make_unique<DeviceMemory>(device);
}

}  // namespace nmt::cuda
