#pragma once

#include "core/error.h"

#include <string>

#include <cuda_runtime.h>

namespace nmt::cuda {

/// "cudaMalloc" of "cudaMalloc(&data, bytes)", "cublasCreate" of "library.cublasCreate(&handle)".
std::string call_name(const char* call);

/// Throws an Error with the message, or DeviceLost if the device fails other calls as well.
[[noreturn]] void fail_call(const std::string& message);

inline void check(cudaError_t status, const char* call) {
  if (status == cudaErrorMemoryAllocation)
    throw OutOfMemory(fmt::format("{}: {}", call_name(call), cudaGetErrorString(status)));
  if (status != cudaSuccess)
    fail_call(fmt::format("{}: {} ({})", call_name(call), cudaGetErrorString(status),
                          cudaGetErrorName(status)));
}

}  // namespace nmt::cuda

/// Fails when a call of the CUDA libraries fails, naming the call. Each library's status type has
/// an overload of check().
#define NMT_CUDA_CHECK(call) ::nmt::cuda::check((call), #call)
