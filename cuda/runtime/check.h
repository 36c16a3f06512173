#pragma once

#include "core/error.h"

#include <cuda_runtime.h>

namespace nmt::cuda {

/// "cudaMalloc" of "cudaMalloc(&data, bytes)", "cublasCreate" of "library.cublasCreate(&handle)".
std::string call_name(const char* call);

inline void check(cudaError_t status, const char* call) {
  if (status == cudaErrorMemoryAllocation)
    throw OutOfMemory(fmt::format("{}: {}; smaller batches need less", call_name(call),
                                  cudaGetErrorString(status)));
  if (status != cudaSuccess)
    NMT_FAIL("{}: {} ({})", call_name(call), cudaGetErrorString(status), cudaGetErrorName(status));
}

}  // namespace nmt::cuda

/// Fails when a call of the CUDA libraries fails, naming the call. Each library's status type has
/// an overload of check().
#define NMT_CUDA_CHECK(call) ::nmt::cuda::check((call), #call)
