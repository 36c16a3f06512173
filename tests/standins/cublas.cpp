// libcublas for tests of cuda/libraries/blas.cpp: NVIDIA's functions as documented, in plain C++.

#include "tests/standins/product.h"

using namespace nmt::standins;

struct cublasContext {
  int device = nmt_standin_device();
  cudaStream_t stream = nullptr;
  bool has_workspace = false;
};

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (const cublasStatus_t status = planted("cublasCreate"); status != CUBLAS_STATUS_SUCCESS)
    return status;
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  planted("cublasDestroy");
  if (!nmt_standin_exists(handle->stream)) planted("cublasDestroy after its stream");
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
// Resets the workspace, as documented.
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  if (const cublasStatus_t status = planted("cublasSetStream"); status != CUBLAS_STATUS_SUCCESS)
    return status;
  handle->stream = stream;
  handle->has_workspace = false;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  if (!nmt_standin_has(workspace, bytes) || reinterpret_cast<std::uintptr_t>(workspace) % 16 != 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  handle->has_workspace = true;
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED: return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE: return "an invalid value was passed";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "the function failed to launch on the GPU";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "the function is not supported";
  }
  return "unknown";
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transpose_a,
                                          cublasOperation_t transpose_b, int m, int n, int k,
                                          const void* alpha, const void* a, cudaDataType a_type,
                                          int lda, long long a_stride, const void* b,
                                          cudaDataType b_type, int ldb, long long b_stride,
                                          const void* beta, void* c, cudaDataType c_type, int ldc,
                                          long long c_stride, int count,
                                          cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  if (const cublasStatus_t status = planted("cublasGemmStridedBatchedEx");
      status != CUBLAS_STATUS_SUCCESS)
    return status;
  if (!handle || handle->device != nmt_standin_device()) return CUBLAS_STATUS_NOT_INITIALIZED;
  // Without a workspace of the caller, cuBLAS allocates one, which a capture refuses.
  if (!handle->has_workspace || !nmt_standin_exists(handle->stream))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  if (algorithm != CUBLAS_GEMM_DEFAULT || m < 0 || n < 0 || k < 0 || count < 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  const bool ta = transpose_a == CUBLAS_OP_T, tb = transpose_b == CUBLAS_OP_T;
  for (int i = 0; i < count; ++i) {
    const auto at = [i](const void* data, cudaDataType type, long long stride) {
      return static_cast<const char*>(data) + i * stride * (type == CUDA_R_16BF ? 2 : 4);
    };
    const Product product{.m = m,
                          .n = n,
                          .k = k,
                          .transpose_a = ta,
                          .transpose_b = tb,
                          .tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32,
                          .alpha = *static_cast<const float*>(alpha),
                          .beta = *static_cast<const float*>(beta),
                          .a = {at(a, a_type, a_stride), a_type, ta ? k : m, ta ? m : k, lda},
                          .b = {at(b, b_type, b_stride), b_type, tb ? n : k, tb ? k : n, ldb},
                          .c = {at(c, c_type, c_stride), c_type, m, n, ldc}};
    if (!product.is_valid()) return CUBLAS_STATUS_INVALID_VALUE;
    const cublasStatus_t status = enqueue(handle->stream, "cuBLAS", [product] {
      product.run();
      return 0;
    });
    if (status != CUBLAS_STATUS_SUCCESS) return status;
  }
  return CUBLAS_STATUS_SUCCESS;
}
}
