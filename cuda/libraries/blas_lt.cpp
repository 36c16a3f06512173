#include "core/dynamic_library.h"
#include "cuda/libraries/blas.h"
#include "cuda/libraries/blas_status.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/graph.h"
#include "cuda/runtime/state.h"

#include <memory>
#include <type_traits>

#include <cublasLt.h>

namespace nmt::cuda {
namespace {

#define NMT_CUBLAS_LT_FUNCTIONS(function)         \
  function(cublasLtCreate);                       \
  function(cublasLtDestroy);                      \
  function(cublasLtGetStatusString);              \
  function(cublasLtMatmulDescCreate);             \
  function(cublasLtMatmulDescDestroy);            \
  function(cublasLtMatmulDescSetAttribute);       \
  function(cublasLtMatrixLayoutCreate);           \
  function(cublasLtMatrixLayoutDestroy);          \
  function(cublasLtMatmulPreferenceCreate);       \
  function(cublasLtMatmulPreferenceDestroy);      \
  function(cublasLtMatmulPreferenceSetAttribute); \
  function(cublasLtMatmulAlgoGetHeuristic);       \
  function(cublasLtMatmul)

// A part of cuBLAS, installed with it.
struct CublasLtLibrary {
  NMT_CUBLAS_LT_FUNCTIONS(NMT_FUNCTION_MEMBER);

  CublasLtLibrary() {
    NMT_CUBLAS_LT_FUNCTIONS(NMT_FIND_FUNCTION);
    library.require("device=cuda");
  }
  static const CublasLtLibrary& get() {
    static const CublasLtLibrary& opened = *new CublasLtLibrary;  // never closed: CUDA ends at exit
    return opened;
  }

 private:
  DynamicLibrary library{soname("libcublasLt", CUBLAS_VER_MAJOR)};
};

template <class T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, cublasStatus_t (*)(T)>;

// What NVIDIA recommends for Hopper.
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

}  // namespace

static void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    fail_blas(status, call, CublasLtLibrary::get().cublasLtGetStatusString(status));
}

/// A handle of cuBLASLt and its workspace.
class BlasLt {
 public:
  BlasLt() {
    const CublasLtLibrary& library = CublasLtLibrary::get();
    NMT_CUDA_CHECK(library.cublasLtCreate(&handle_));
  }
  ~BlasLt() { CublasLtLibrary::get().cublasLtDestroy(handle_); }
  BlasLt(const BlasLt&) = delete;
  BlasLt& operator=(const BlasLt&) = delete;
  cublasLtHandle_t handle() const { return handle_; }
  Workspace workspace;

 private:
  cublasLtHandle_t handle_ = nullptr;
};

namespace {

// The layout of a stored matrix of `rows` rows. cuBLASLt is column-major, so it sees it transposed.
Owned<cublasLtMatrixLayout_t> layout(cudaDataType type, std::int64_t rows, std::int64_t width,
                                     std::int64_t ld) {
  const CublasLtLibrary& library = CublasLtLibrary::get();
  cublasLtMatrixLayout_t made = nullptr;
  NMT_CUDA_CHECK(library.cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(width),
                                                    static_cast<std::uint64_t>(rows), ld));
  return {made, library.cublasLtMatrixLayoutDestroy};
}

Owned<cublasLtMatmulDesc_t> describe(const Product& p, Precision precision) {
  const CublasLtLibrary& library = CublasLtLibrary::get();
  cublasLtMatmulDesc_t made = nullptr;
  const cublasComputeType_t compute =
      precision == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  NMT_CUDA_CHECK(library.cublasLtMatmulDescCreate(&made, compute, CUDA_R_32F));
  Owned<cublasLtMatmulDesc_t> owned(made, library.cublasLtMatmulDescDestroy);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    NMT_CUDA_CHECK(library.cublasLtMatmulDescSetAttribute(made, attribute, &value, sizeof value));
  };
  const auto operation = [](const Operand& x) { return x.transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  // C^T = op(B)^T op(A)^T: a bias for each row of C^T.
  set(CUBLASLT_MATMUL_DESC_TRANSA, operation(p.b));
  set(CUBLASLT_MATMUL_DESC_TRANSB, operation(p.a));
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, cublasLtEpilogue_t{CUBLASLT_EPILOGUE_BIAS});
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
  return owned;
}

// The greatest power of two, at most 64, that divides the address. The arena promises 64; what a
// tensor has beyond that depends on the batches before, on which bits must not depend.
std::uint32_t alignment_of(const void* data) {
  std::uint32_t alignment = 64;
  while (reinterpret_cast<std::uintptr_t>(data) % alignment != 0) alignment /= 2;
  return alignment;
}

Owned<cublasLtMatmulPreference_t> prefer(const void* a, const void* b, const void* c) {
  const CublasLtLibrary& library = CublasLtLibrary::get();
  cublasLtMatmulPreference_t made = nullptr;
  NMT_CUDA_CHECK(library.cublasLtMatmulPreferenceCreate(&made));
  Owned<cublasLtMatmulPreference_t> owned(made, library.cublasLtMatmulPreferenceDestroy);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    NMT_CUDA_CHECK(
        library.cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof value));
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(a));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(b));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(c));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(c));
  return owned;
}

}  // namespace

bool library_product_with_bias(const Cuda& cuda, const Product& p, Precision precision) {
  NMT_CHECK(p.count == 1 && p.beta == 0.0f && p.ldc == p.n, "a bias for {} products with beta {}",
            p.count, p.beta);
  NMT_CHECK(!p.a.bf16 == !p.b.bf16, "a product of float32 and bfloat16");
  CudaDevice::State& state = state_of(cuda);
  if (!state.blas_lt) state.blas_lt = std::make_shared<BlasLt>();
  const CublasLtLibrary& library = CublasLtLibrary::get();
  const bool rounded = p.a.bf16 != nullptr;
  const cudaDataType type = rounded ? CUDA_R_16BF : CUDA_R_32F;
  const auto data = [&](const Operand& x) {
    return rounded ? static_cast<const void*>(x.bf16) : static_cast<const void*>(x.f32);
  };
  const auto stored = [&](const Operand& x, std::int64_t rows, std::int64_t columns) {
    return x.transpose ? layout(type, columns, rows, x.ld) : layout(type, rows, columns, x.ld);
  };
  const auto operation = describe(p, precision);
  const auto a = stored(p.b, p.k, p.n), b = stored(p.a, p.m, p.k),
             c = layout(CUDA_R_32F, p.m, p.n, p.ldc);
  const auto preference = prefer(data(p.b), data(p.a), p.c);
  // The library caches its choice for each shape.
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t status = library.cublasLtMatmulAlgoGetHeuristic(
      state.blas_lt->handle(), operation.get(), a.get(), b.get(), c.get(), c.get(),
      preference.get(), 1, &found, &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && count == 0))
    return false;
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  void* const workspace = state.blas_lt->workspace.get(state, workspace_bytes);
  if (is_aborted(state)) return true;  // the workspace has moved memory
  const float one = 1.0f, zero = 0.0f;
  NMT_CUDA_CHECK(library.cublasLtMatmul(
      state.blas_lt->handle(), operation.get(), &one, data(p.b), a.get(), data(p.a), b.get(), &zero,
      p.c, c.get(), p.c, c.get(), &found.algo, workspace, workspace_bytes, state.stream));
  return true;
}

}  // namespace nmt::cuda
