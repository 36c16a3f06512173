#include "cuda/libraries/blas.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/state.h"

#include <memory>
#include <type_traits>

#include <cublasLt.h>
#include <dlfcn.h>

namespace nmt::cuda {
namespace {

// A part of cuBLAS, which brings it along.
class LtLibrary {
 public:
  static const LtLibrary& get() {
    static const LtLibrary library;
    return library;
  }
  decltype(&::cublasLtCreate) cublasLtCreate;
  decltype(&::cublasLtDestroy) cublasLtDestroy;
  decltype(&::cublasLtGetStatusString) cublasLtGetStatusString;
  decltype(&::cublasLtMatmulDescCreate) cublasLtMatmulDescCreate;
  decltype(&::cublasLtMatmulDescDestroy) cublasLtMatmulDescDestroy;
  decltype(&::cublasLtMatmulDescSetAttribute) cublasLtMatmulDescSetAttribute;
  decltype(&::cublasLtMatrixLayoutCreate) cublasLtMatrixLayoutCreate;
  decltype(&::cublasLtMatrixLayoutDestroy) cublasLtMatrixLayoutDestroy;
  decltype(&::cublasLtMatmulPreferenceCreate) cublasLtMatmulPreferenceCreate;
  decltype(&::cublasLtMatmulPreferenceDestroy) cublasLtMatmulPreferenceDestroy;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) cublasLtMatmulPreferenceSetAttribute;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) cublasLtMatmulAlgoGetHeuristic;
  decltype(&::cublasLtMatmul) cublasLtMatmul;

 private:
  LtLibrary() {
    constexpr const char* name = "libcublasLt.so.13";
    void* const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      NMT_FAIL(
          "--device cuda needs {}: {}; it belongs beside the program's libraries or into "
          "LD_LIBRARY_PATH",
          name, dlerror());
    find(handle, "cublasLtCreate", cublasLtCreate);
    find(handle, "cublasLtDestroy", cublasLtDestroy);
    find(handle, "cublasLtGetStatusString", cublasLtGetStatusString);
    find(handle, "cublasLtMatmulDescCreate", cublasLtMatmulDescCreate);
    find(handle, "cublasLtMatmulDescDestroy", cublasLtMatmulDescDestroy);
    find(handle, "cublasLtMatmulDescSetAttribute", cublasLtMatmulDescSetAttribute);
    find(handle, "cublasLtMatrixLayoutCreate", cublasLtMatrixLayoutCreate);
    find(handle, "cublasLtMatrixLayoutDestroy", cublasLtMatrixLayoutDestroy);
    find(handle, "cublasLtMatmulPreferenceCreate", cublasLtMatmulPreferenceCreate);
    find(handle, "cublasLtMatmulPreferenceDestroy", cublasLtMatmulPreferenceDestroy);
    find(handle, "cublasLtMatmulPreferenceSetAttribute", cublasLtMatmulPreferenceSetAttribute);
    find(handle, "cublasLtMatmulAlgoGetHeuristic", cublasLtMatmulAlgoGetHeuristic);
    find(handle, "cublasLtMatmul", cublasLtMatmul);
  }
  template <class Function>
  static void find(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    NMT_CHECK(function, "libcublasLt has no {}", name);
  }
};

template <class T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, cublasStatus_t (*)(T)>;

constexpr std::size_t workspace_bytes = std::size_t{32}
                                        << 20;  // what NVIDIA's documentation recommends for Hopper

}  // namespace

static void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    NMT_FAIL("{}: {}", call_name(call), LtLibrary::get().cublasLtGetStatusString(status));
}

/// A handle of cuBLASLt and its workspace.
class BlasLt {
 public:
  BlasLt() {
    const LtLibrary& library = LtLibrary::get();
    NMT_CUDA_CHECK(library.cublasLtCreate(&handle_));
  }
  ~BlasLt() { LtLibrary::get().cublasLtDestroy(handle_); }
  BlasLt(const BlasLt&) = delete;
  BlasLt& operator=(const BlasLt&) = delete;
  cublasLtHandle_t handle() const { return handle_; }
  Workspace workspace;

 private:
  cublasLtHandle_t handle_ = nullptr;
};

namespace {

// A stored matrix of `rows` rows: cuBLASLt is column-major and sees it transposed, its rows as
// columns.
Owned<cublasLtMatrixLayout_t> layout(cudaDataType type, std::int64_t rows, std::int64_t width,
                                     std::int64_t ld) {
  const LtLibrary& library = LtLibrary::get();
  cublasLtMatrixLayout_t made = nullptr;
  NMT_CUDA_CHECK(library.cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(width),
                                                    static_cast<std::uint64_t>(rows), ld));
  return {made, library.cublasLtMatrixLayoutDestroy};
}

Owned<cublasLtMatmulDesc_t> describe(const Product& p, Precision precision) {
  const LtLibrary& library = LtLibrary::get();
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

// Of addresses: the greatest power of two that divides them, 256 at most.
std::uint32_t alignment_of(const void* data) {
  std::uint32_t alignment = 256;
  while (reinterpret_cast<std::uintptr_t>(data) % alignment != 0) alignment /= 2;
  return alignment;
}

Owned<cublasLtMatmulPreference_t> prefer(const void* a, const void* b, const void* c) {
  const LtLibrary& library = LtLibrary::get();
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
  const LtLibrary& library = LtLibrary::get();
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
  // The library keeps what it found for shapes that it has seen.
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t status = library.cublasLtMatmulAlgoGetHeuristic(
      state.blas_lt->handle(), operation.get(), a.get(), b.get(), c.get(), c.get(),
      preference.get(), 1, &found, &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && count == 0))
    return false;
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  void* const workspace = state.blas_lt->workspace.get(state, workspace_bytes);
  const float one = 1.0f, zero = 0.0f;
  NMT_CUDA_CHECK(library.cublasLtMatmul(
      state.blas_lt->handle(), operation.get(), &one, data(p.b), a.get(), data(p.a), b.get(), &zero,
      p.c, c.get(), p.c, c.get(), &found.algo, workspace, workspace_bytes, state.stream));
  return true;
}

}  // namespace nmt::cuda
