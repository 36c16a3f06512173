#pragma once

// Memory of a device.

#include "cuda/runtime/state.h"

#include <cstddef>
#include <memory>

namespace nmt::cuda {

/// Null where there is no memory, even after the graphs have been freed.
void* allocate(const CudaDevice::State& state, std::size_t bytes);

/// Free and total memory. Ends a capture, which may not allow the query.
CudaDevice::Memory memory_of(const CudaDevice::State& state);

/// Throws OutOfMemory for a request of so many bytes.
[[noreturn]] void refuse(const CudaDevice::State& state, std::size_t bytes);

/// The implementation of CudaDevice::memory_source().
std::unique_ptr<MemorySource> memory_source(CudaDevice& device);

}  // namespace nmt::cuda
