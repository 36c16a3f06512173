#pragma once

#include "cuda/runtime/check.h"

#include <cublas_v2.h>

namespace nmt::cuda {

/// Raises the failure of a call of cuBLAS or cuBLASLt; `text` describes the status. On a full
/// device, a call that makes a handle may report that the library is not initialized.
[[noreturn]] inline void fail_blas(cublasStatus_t status, const char* call, const char* text) {
  const std::string name = call_name(call), message = fmt::format("{}: {}", name, text);
  const bool makes_handle = name == "cublasCreate" || name == "cublasLtCreate";
  if (status == CUBLAS_STATUS_ALLOC_FAILED ||
      (status == CUBLAS_STATUS_NOT_INITIALIZED && makes_handle))
    throw OutOfMemory(message);
  fail_call(message);
}

}  // namespace nmt::cuda
