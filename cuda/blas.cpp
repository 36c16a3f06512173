#include "cuda/blas.h"

#include "cuda/check.h"
#include "cuda/state.h"
#include <cublas_v2.h>
#include <dlfcn.h>

namespace nmt::cuda {
namespace {

// cuBLAS is 0.6 GB with its parts and is opened when a product first needs it, so that programs start quickly and
// without it.
class Library {
 public:
  static const Library& get() {
    static const Library library;
    return library;
  }
  decltype(&::cublasCreate_v2) cublasCreate_v2;
  decltype(&::cublasDestroy_v2) cublasDestroy_v2;
  decltype(&::cublasSetStream_v2) cublasSetStream_v2;
  decltype(&::cublasGetStatusString) cublasGetStatusString;
  cublasStatus_t (*cublasGemmStridedBatchedEx)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                               const void*, const void*, cudaDataType, int, long long, const void*,
                                               cudaDataType, int, long long, const void*, void*, cudaDataType, int,
                                               long long, int, cublasComputeType_t, cublasGemmAlgo_t);

 private:
  Library() {
    constexpr const char* name = "libcublas.so.13";
    static_assert(CUBLAS_VER_MAJOR == 13);
    void* const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      NMT_FAIL("--device cuda needs {}: {}; it belongs beside the program's libraries or into LD_LIBRARY_PATH", name,
               dlerror());
    find(handle, "cublasCreate_v2", cublasCreate_v2);
    find(handle, "cublasDestroy_v2", cublasDestroy_v2);
    find(handle, "cublasSetStream_v2", cublasSetStream_v2);
    find(handle, "cublasGemmStridedBatchedEx", cublasGemmStridedBatchedEx);
    find(handle, "cublasGetStatusString", cublasGetStatusString);
  }
  template <class Function>
  static void find(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    NMT_CHECK(function, "libcublas has no {}", name);
  }
};

}  // namespace

static void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    NMT_FAIL("{}: {}", call_name(call), Library::get().cublasGetStatusString(status));
}

/// A handle of cuBLAS on the device's stream.
class Blas {
 public:
  explicit Blas(cudaStream_t stream) {
    const Library& library = Library::get();
    NMT_CUDA_CHECK(library.cublasCreate(&handle_));
    NMT_CUDA_CHECK(library.cublasSetStream(handle_, stream));
  }
  ~Blas() { Library::get().cublasDestroy(handle_); }
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;
  cublasHandle_t handle() const { return handle_; }

 private:
  cublasHandle_t handle_ = nullptr;
};

void multiply(const Cuda& cuda, const Product& p) {
  if (p.m <= 0 || p.n <= 0 || p.count <= 0) return;
  CudaDevice::State& state = state_of(cuda);
  if (!state.blas) state.blas = std::make_shared<Blas>(state.stream);
  const Library& library = Library::get();
  const float one = 1.0f;
  const auto operation = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  // cuBLAS is column-major: it sees all matrices transposed, and C^T = op(B)^T op(A)^T.
  NMT_CUDA_CHECK(library.cublasGemmStridedBatchedEx(
      state.blas->handle(), operation(p.transpose_b), operation(p.transpose_a), static_cast<int>(p.n),
      static_cast<int>(p.m), static_cast<int>(p.k), &one, p.b, CUDA_R_32F, static_cast<int>(p.ldb), p.b_stride, p.a,
      CUDA_R_32F, static_cast<int>(p.lda), p.a_stride, &p.beta, p.c, CUDA_R_32F, static_cast<int>(p.ldc), p.c_stride,
      static_cast<int>(p.count), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

}  // namespace nmt::cuda
