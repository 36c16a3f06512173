#pragma once

// Memory of a device.

#include "cuda/runtime/state.h"

#include <cstddef>
#include <memory>

namespace nmt::cuda {

/// Allocates device memory; frees all graphs if there is not enough. Null: there is still not
/// enough.
void* allocate(const CudaDevice::State& state, std::size_t bytes);

/// Free and total memory. Ends a capture, which may not allow the query.
CudaDevice::Memory memory_of(const CudaDevice::State& state);

/// Throws OutOfMemory for a request of `bytes`.
[[noreturn]] void throw_out_of_memory(const CudaDevice::State& state, std::size_t bytes);

/// The implementation of CudaDevice::memory_source().
std::unique_ptr<MemorySource> memory_source(CudaDevice& device);

}  // namespace nmt::cuda
