#include "tensor/nccl.h"

#include "cuda/runtime/check.h"
#include "cuda/runtime/state.h"

#include <cstring>

#include <dlfcn.h>
#include <nccl.h>

namespace nmt {
namespace cuda {
namespace {

// NCCL is 0.2 GB and is opened by the first training on several GPUs.
class NcclLibrary {
 public:
  static const NcclLibrary& get() {
    static const NcclLibrary library;
    return library;
  }
  decltype(&::ncclGetUniqueId) ncclGetUniqueId;
  decltype(&::ncclCommInitRank) ncclCommInitRank;
  decltype(&::ncclCommDestroy) ncclCommDestroy;
  decltype(&::ncclCommAbort) ncclCommAbort;
  decltype(&::ncclCommGetAsyncError) ncclCommGetAsyncError;
  decltype(&::ncclAllReduce) ncclAllReduce;
  decltype(&::ncclBroadcast) ncclBroadcast;
  decltype(&::ncclGetErrorString) ncclGetErrorString;
  decltype(&::ncclGetLastError) ncclGetLastError;

 private:
  NcclLibrary() {
    constexpr const char* name = "libnccl.so.2";
    static_assert(NCCL_MAJOR == 2);
    void* const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      fail(ExitStatus::usage,
           "--device cuda on several processes needs {}: {}; it belongs beside the program's "
           "libraries or into LD_LIBRARY_PATH",
           name, dlerror());
    find(handle, "ncclGetUniqueId", ncclGetUniqueId);
    find(handle, "ncclCommInitRank", ncclCommInitRank);
    find(handle, "ncclCommDestroy", ncclCommDestroy);
    find(handle, "ncclCommAbort", ncclCommAbort);
    find(handle, "ncclCommGetAsyncError", ncclCommGetAsyncError);
    find(handle, "ncclAllReduce", ncclAllReduce);
    find(handle, "ncclBroadcast", ncclBroadcast);
    find(handle, "ncclGetErrorString", ncclGetErrorString);
    find(handle, "ncclGetLastError", ncclGetLastError);
  }
  template <class Function>
  static void find(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    NMT_CHECK(function, "libnccl has no {}", name);
  }
};

}  // namespace

static void check(ncclResult_t status, const char* call) {
  if (status == ncclSuccess) return;
  const NcclLibrary& library = NcclLibrary::get();
  const char* const more = library.ncclGetLastError(nullptr);
  NMT_FAIL("{}: {}{}{}", call_name(call), library.ncclGetErrorString(status),
           more && *more ? ": " : "", more ? more : "");
}

}  // namespace cuda

struct Nccl::State {
  cudaStream_t stream = nullptr;  // the device's
  cudaStream_t beside = nullptr;  // of sums
  cudaEvent_t event = nullptr;
  ncclComm_t communicator = nullptr;

  // What has failed since: a GPU or its process that is gone.
  void look() const {
    ncclResult_t later = ncclSuccess;
    const auto& library = cuda::NcclLibrary::get();
    NMT_CUDA_CHECK(library.ncclCommGetAsyncError(communicator, &later));
    cuda::check(later, "an exchange between GPUs");
  }
  // What is queued in `second` from here on waits for what is queued in `first`.
  void order(cudaStream_t first, cudaStream_t second) const {
    NMT_CUDA_CHECK(cudaEventRecord(event, first));
    NMT_CUDA_CHECK(cudaStreamWaitEvent(second, event, 0));
  }
};

Nccl::Id Nccl::new_id() {
  ncclUniqueId id;
  static_assert(sizeof id.internal == sizeof(Id));
  const auto& library = cuda::NcclLibrary::get();
  NMT_CUDA_CHECK(library.ncclGetUniqueId(&id));
  Id bytes;
  std::memcpy(bytes.data(), id.internal, bytes.size());
  return bytes;
}

Nccl::Nccl(CudaDevice& device, const Id& id, int rank, int size)
    : state_(std::make_unique<State>()) {
  ncclUniqueId unique;
  std::memcpy(unique.internal, id.data(), id.size());
  const auto& library = cuda::NcclLibrary::get();
  NMT_CUDA_CHECK(cudaSetDevice(device.index()));
  state_->stream = device.state().stream;
  NMT_CUDA_CHECK(cudaStreamCreateWithFlags(&state_->beside, cudaStreamNonBlocking));
  NMT_CUDA_CHECK(cudaEventCreateWithFlags(&state_->event, cudaEventDisableTiming));
  NMT_CUDA_CHECK(library.ncclCommInitRank(&state_->communicator, size, unique, rank));
}

// A failed exchange would be waited for in vain.
Nccl::~Nccl() {
  const auto& library = cuda::NcclLibrary::get();
  ncclResult_t later = ncclSuccess;
  library.ncclCommGetAsyncError(state_->communicator, &later);
  cudaError_t status =
      later == ncclSuccess ? cudaStreamSynchronize(state_->beside) : cudaErrorUnknown;
  if (status == cudaSuccess) status = cudaStreamSynchronize(state_->stream);
  if (status == cudaSuccess)
    library.ncclCommDestroy(state_->communicator);
  else
    library.ncclCommAbort(state_->communicator);
  cudaEventDestroy(state_->event);
  cudaStreamDestroy(state_->beside);
}

void Nccl::begin_sum(float* values, std::int64_t n) {
  state_->look();
  state_->order(state_->stream, state_->beside);
  const auto& library = cuda::NcclLibrary::get();
  NMT_CUDA_CHECK(library.ncclAllReduce(values, values, static_cast<std::size_t>(n), ncclFloat32,
                                       ncclSum, state_->communicator, state_->beside));
}

void Nccl::finish_sums() {
  state_->order(state_->beside, state_->stream);
}

void Nccl::broadcast(float* values, std::int64_t n) {
  state_->look();
  const auto& library = cuda::NcclLibrary::get();
  NMT_CUDA_CHECK(library.ncclBroadcast(values, values, static_cast<std::size_t>(n), ncclFloat32, 0,
                                       state_->communicator, state_->stream));
}

}  // namespace nmt
