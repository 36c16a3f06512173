// libcublasLt for tests of cuda/libraries/blas_lt.cpp: NVIDIA's functions as documented, in plain
// C++.

#include "tests/standins/product.h"

#include <cstring>

#include <cublasLt.h>

using namespace nmt::standins;

struct cublasLtContext {
  int device = nmt_standin_device();
};
struct cublasLtMatmulDescOpaque {
  cublasComputeType_t compute;
  cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue{};
  const float* bias = nullptr;
};
struct cublasLtMatrixLayoutOpaque {
  cudaDataType type;
  std::int64_t rows, columns, ld;
};
struct cublasLtMatmulPreferenceOpaque {
  std::size_t workspace = 0;
  std::uint32_t alignment[4] = {256, 256, 256, 256};  // of A, B, C, D, as documented
};

namespace {

// An attribute's value, where the size is right.
template <class T>
cublasStatus_t take(T& to, const void* value, std::size_t bytes) {
  if (!value || bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

Product product_of(const cublasLtMatmulDescOpaque& description, const cublasLtMatrixLayoutOpaque& a,
                   const cublasLtMatrixLayoutOpaque& b, const cublasLtMatrixLayoutOpaque& d) {
  Product product;
  product.transpose_a = description.transpose_a == CUBLAS_OP_T;
  product.transpose_b = description.transpose_b == CUBLAS_OP_T;
  product.tf32 = description.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  product.m = d.rows;
  product.n = d.columns;
  product.k = product.transpose_a ? a.rows : a.columns;
  product.a = {nullptr, a.type, a.rows, a.columns, a.ld};
  product.b = {nullptr, b.type, b.rows, b.columns, b.ld};
  product.c = {nullptr, d.type, d.rows, d.columns, d.ld};
  if (description.epilogue == CUBLASLT_EPILOGUE_BIAS) product.bias = description.bias;
  return product;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (const cublasStatus_t status = planted("cublasLtCreate"); status != CUBLAS_STATUS_SUCCESS)
    return status;
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_ALLOC_FAILED: return "the resource allocation failed";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "the library was not initialized";
    default: return "another status";
  }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                        cudaDataType scale) {
  if (scale != CUDA_R_32F) return CUBLAS_STATUS_INVALID_VALUE;
  *made = new cublasLtMatmulDescOpaque{compute};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete description;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return take(description->transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return take(description->transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return take(description->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return take(description->bias, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t ld) {
  *made = new cublasLtMatrixLayoutOpaque{type, static_cast<std::int64_t>(rows),
                                         static_cast<std::int64_t>(columns), ld};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  *made = new cublasLtMatmulPreferenceOpaque;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    return take(preference->workspace, value, bytes);
  const int which = attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
  if (which < 0 || which > 3) return CUBLAS_STATUS_INVALID_VALUE;
  return take(preference->alignment[which], value, bytes);
}

// No algorithm for rows that are not a multiple of 16 bytes, so that tests cover both paths. The
// result carries the alignments that it relies on.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
                                              cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* count) {
  *count = 0;
  if (const cublasStatus_t status = planted("cublasLtMatmulAlgoGetHeuristic");
      status != CUBLAS_STATUS_SUCCESS)
    return status;
  if (!handle || most < 1 || c->rows != d->rows || c->columns != d->columns)
    return CUBLAS_STATUS_INVALID_VALUE;
  const Product product = product_of(*description, *a, *b, *d);
  const bool fits = (product.transpose_a ? a->columns : a->rows) == product.m &&
                    (product.transpose_b ? b->columns : b->rows) == product.k &&
                    (product.transpose_b ? b->rows : b->columns) == product.n && a->type == b->type;
  if (!fits) return CUBLAS_STATUS_INVALID_VALUE;
  if (d->ld % 4 != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  *count = 1;
  *results = {};
  results->workspaceSize = preference->workspace / 2;
  results->algo.data[0] = 0x6E6D74;  // chosen here
  for (int i = 0; i < 4; ++i) results->algo.data[1 + i] = preference->alignment[i];
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t, void* d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  if (const cublasStatus_t status = planted("cublasLtMatmul"); status != CUBLAS_STATUS_SUCCESS)
    return status;
  if (!handle || handle->device != nmt_standin_device()) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (algorithm->data[0] != 0x6E6D74 || !nmt_standin_has(workspace, workspace_bytes))
    return CUBLAS_STATUS_INVALID_VALUE;
  const void* const matrices[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i)
    if (reinterpret_cast<std::uintptr_t>(matrices[i]) % algorithm->data[1 + i] != 0)
      return CUBLAS_STATUS_INVALID_VALUE;
  Product product = product_of(*description, *a_layout, *b_layout, *d_layout);
  product.alpha = *static_cast<const float*>(alpha);
  product.beta = *static_cast<const float*>(beta);
  product.a.data = a;
  product.b.data = b;
  product.c.data = d;
  if (!product.is_valid()) return CUBLAS_STATUS_INVALID_VALUE;
  return enqueue(stream, "cuBLASLt", [product] {
    product.run();
    return 0;
  });
}
}
