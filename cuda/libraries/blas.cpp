#include "cuda/libraries/blas.h"

#include "core/dynamic_library.h"
#include "cuda/libraries/blas_status.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/graph.h"
#include "cuda/runtime/state.h"

#include <cublas_v2.h>

namespace nmt::cuda {
namespace {

#define NMT_CUBLAS_FUNCTIONS(function) \
  function(cublasCreate_v2);           \
  function(cublasDestroy_v2);          \
  function(cublasSetStream_v2);        \
  function(cublasSetWorkspace_v2);     \
  function(cublasGetStatusString)

// cuBLAS is 0.6 GB with its parts and is opened when a product first needs it, so that programs
// start quickly and run without it.
struct CublasLibrary {
  NMT_CUBLAS_FUNCTIONS(NMT_FUNCTION_MEMBER);
  // The header overloads this function.
  cublasStatus_t (*cublasGemmStridedBatchedEx)(cublasHandle_t, cublasOperation_t, cublasOperation_t,
                                               int, int, int, const void*, const void*,
                                               cudaDataType, int, long long, const void*,
                                               cudaDataType, int, long long, const void*, void*,
                                               cudaDataType, int, long long, int,
                                               cublasComputeType_t, cublasGemmAlgo_t) = nullptr;

  CublasLibrary() {
    NMT_CUBLAS_FUNCTIONS(NMT_FIND_FUNCTION);
    NMT_FIND_FUNCTION(cublasGemmStridedBatchedEx);
    library.require("device=cuda");
  }
  static const CublasLibrary& get() {
    static const CublasLibrary& opened = *new CublasLibrary;  // never closed: CUDA ends at exit
    return opened;
  }

 private:
  DynamicLibrary library{soname("libcublas", CUBLAS_VER_MAJOR)};
};

}  // namespace

static void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    fail_blas(status, call, CublasLibrary::get().cublasGetStatusString(status));
}

// NVIDIA's recommendation for Hopper; older devices need less (cuBLAS, cublasSetWorkspace).
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

/// A handle of cuBLAS on the device's stream with its own workspace, since cuBLAS would allocate
/// one during a graph capture.
class Blas {
 public:
  explicit Blas(CudaDevice::State& state) {
    const CublasLibrary& library = CublasLibrary::get();
    void* const workspace = workspace_.get(state, workspace_bytes);  // may throw
    NMT_CUDA_CHECK(library.cublasCreate(&handle_));
    try {  // a throwing constructor runs no destructor
      NMT_CUDA_CHECK(library.cublasSetStream(handle_, state.stream));  // resets the workspace
      NMT_CUDA_CHECK(library.cublasSetWorkspace(handle_, workspace, workspace_bytes));
    } catch (...) {
      library.cublasDestroy(handle_);  // unchecked
      throw;
    }
  }
  ~Blas() { CublasLibrary::get().cublasDestroy(handle_); }
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;
  cublasHandle_t handle() const { return handle_; }

 private:
  Workspace workspace_;
  cublasHandle_t handle_ = nullptr;
};

void library_product(const Cuda& cuda, const Product& p, Precision precision) {
  CudaDevice::State& state = state_of(cuda);
  if (!state.blas) state.blas = std::make_shared<Blas>(state);
  if (is_aborted(state)) return;  // the handle has moved memory
  NMT_CHECK(!p.a.bf16 == !p.b.bf16, "a product of float32 and bfloat16");
  const bool rounded = p.a.bf16 != nullptr;
  const cudaDataType type = rounded ? CUDA_R_16BF : CUDA_R_32F;
  const auto data = [&](const Operand& x) {
    return rounded ? static_cast<const void*>(x.bf16) : static_cast<const void*>(x.f32);
  };
  const auto operation = [](const Operand& x) { return x.transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const cublasComputeType_t compute =
      precision == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  const float one = 1.0f;
  void* const c = p.c_rounded ? static_cast<void*>(p.c_rounded) : p.c;
  const cudaDataType c_type = p.c_rounded ? CUDA_R_16BF : CUDA_R_32F;
  // cuBLAS is column-major: it sees all matrices transposed, and C^T = op(B)^T op(A)^T.
  const CublasLibrary& library = CublasLibrary::get();
  NMT_CUDA_CHECK(library.cublasGemmStridedBatchedEx(
      state.blas->handle(), operation(p.b), operation(p.a), static_cast<int>(p.n),
      static_cast<int>(p.m), static_cast<int>(p.k), &one, data(p.b), type, static_cast<int>(p.b.ld),
      p.b.stride, data(p.a), type, static_cast<int>(p.a.ld), p.a.stride, &p.beta, c, c_type,
      static_cast<int>(p.ldc), p.c_stride, static_cast<int>(p.count), compute,
      CUBLAS_GEMM_DEFAULT));
}

}  // namespace nmt::cuda
