#include "tensor/nccl.h"

#include "core/dynamic_library.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/state.h"

#include <chrono>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include <nccl.h>

namespace nmt {
namespace cuda {
namespace {

#define NMT_NCCL_FUNCTIONS(function) \
  function(ncclGetUniqueId);         \
  function(ncclCommInitRankConfig);  \
  function(ncclCommFinalize);        \
  function(ncclCommDestroy);         \
  function(ncclCommAbort);           \
  function(ncclCommGetAsyncError);   \
  function(ncclAllReduce);           \
  function(ncclBroadcast);           \
  function(ncclGetErrorString);      \
  function(ncclGetLastError)

// NCCL is 0.2 GB and is opened by the first training on several GPUs.
struct NcclLibrary {
  NMT_NCCL_FUNCTIONS(NMT_FUNCTION_MEMBER);

  NcclLibrary() {
    NMT_NCCL_FUNCTIONS(NMT_FIND_FUNCTION);
    library.require("device=cuda on several ranks");
  }
  static const NcclLibrary& get() {
    static const NcclLibrary& opened = *new NcclLibrary;  // never closed: CUDA ends at exit
    return opened;
  }

 private:
  DynamicLibrary library{soname("libnccl", NCCL_MAJOR)};
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
  State() = default;
  ~State() {
    // After a failure; otherwise the communicator has been destroyed.
    if (communicator) cuda::NcclLibrary::get().ncclCommAbort(communicator);
    if (event) cudaEventDestroy(event);                           // unchecked
    if (finished) cudaEventDestroy(finished);                     // unchecked
    if (collective_stream) cudaStreamDestroy(collective_stream);  // unchecked
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  CudaDevice* device = nullptr;
  cudaStream_t stream = nullptr;             // the device's
  cudaStream_t collective_stream = nullptr;  // of all-reduces
  cudaEvent_t event = nullptr, finished = nullptr;
  ncclComm_t communicator = nullptr;

  // Why the communicator was aborted, where no error has reported it yet.
  const char* failure = "the communicator was aborted after a failure";
  double timeout = 0;  // seconds; 0: none
  double last_check = 0;

  // Waits until a call of NCCL has finished, and sets its status; false: not within the timeout. A
  // communicator must not be called while a call is in progress.
  bool wait_until_complete(ncclResult_t& status) const {
    using Clock = std::chrono::steady_clock;
    const auto& library = cuda::NcclLibrary::get();
    for (const Clock::time_point begin = Clock::now(); status == ncclInProgress;) {
      if (const ncclResult_t asked = library.ncclCommGetAsyncError(communicator, &status);
          asked != ncclSuccess)
        status = asked;
      const std::chrono::duration<double> waited = Clock::now() - begin;
      if (status != ncclInProgress) break;
      if (timeout > 0 && waited.count() >= timeout) return false;
      // Most calls complete immediately; starting ranks may take seconds.
      if (waited.count() > 1e-3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  // The status of a call that has finished. Fails after the timeout.
  ncclResult_t completed(ncclResult_t status) {
    if (!wait_until_complete(status)) fail_timeout();
    return status;
  }
  [[noreturn]] void fail_timeout() {
    abort();
    NMT_FAIL("NCCL: the other ranks' GPUs did not respond within {:g} s", timeout);
  }

  // Fails where a previous collective has failed: a rank has exited or its GPU is lost. The
  // communicator is then aborted: its kernels on the device would never end.
  void check_error() {
    NMT_CHECK(communicator, "NCCL: {}", failure);
    ncclResult_t later = ncclSuccess;
    const auto& library = cuda::NcclLibrary::get();
    NMT_CUDA_CHECK(library.ncclCommGetAsyncError(communicator, &later));
    if (later == ncclSuccess || later == ncclInProgress) return;
    abort();
    cuda::check(later, "a collective of NCCL");
  }
  void abort() {
    cuda::NcclLibrary::get().ncclCommAbort(std::exchange(communicator, nullptr));  // unchecked
    detach();
  }
  void detach() const {
    device->state().while_waiting = nullptr;
    device->state().before_free = nullptr;
  }
  // While the host waits for the device.
  void wait(double seconds) {
    constexpr double look_every = 0.05;
    if (seconds < last_check) last_check = 0;  // another wait
    if (seconds - last_check < look_every) return;
    last_check = seconds;
    check_error();
    if (timeout > 0 && seconds >= timeout) fail_timeout();
  }
  // Waits for the collectives and for the work of the device's stream that needs them. The
  // communicator is aborted where they have failed or time out; the next collective reports that.
  void finish() noexcept {
    finish(collective_stream);
    finish(stream);  // broadcasts, and work after sums
  }
  void finish(cudaStream_t work) noexcept {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    const auto& library = cuda::NcclLibrary::get();
    cudaEventRecord(finished, work);  // unchecked
    while (communicator && cudaEventQuery(finished) == cudaErrorNotReady) {
      ncclResult_t later = ncclSuccess;
      library.ncclCommGetAsyncError(communicator, &later);  // unchecked
      const bool failed = later != ncclSuccess && later != ncclInProgress;
      const std::chrono::duration<double> waited = Clock::now() - begin;
      if (failed || (timeout > 0 && waited.count() >= timeout)) {
        failure = failed ? "a collective failed on the device of another rank"
                         : "the other ranks' GPUs did not respond in time";
        abort();
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    cudaGetLastError();  // clears "not ready"
  }
  // Later work in `second` waits for the work queued in `first`.
  void order_streams(cudaStream_t first, cudaStream_t second) const {
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

Nccl::Nccl(CudaDevice& device, const Id& id, int rank, int size, double timeout)
    : state_(std::make_unique<State>()) {
  ncclUniqueId unique;
  std::memcpy(unique.internal, id.data(), id.size());
  const auto& library = cuda::NcclLibrary::get();
  cuda::make_current(device.index());
  state_->stream = device.state().stream;
  NMT_CUDA_CHECK(cudaStreamCreateWithFlags(&state_->collective_stream, cudaStreamNonBlocking));
  for (cudaEvent_t* event : {&state_->event, &state_->finished})
    NMT_CUDA_CHECK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  state_->device = &device;
  state_->timeout = timeout;
  // A blocking call would wait forever for a rank that has failed before its own call.
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclResult_t begun =
      library.ncclCommInitRankConfig(&state_->communicator, size, unique, rank, &config);
  cuda::check(state_->completed(begun), "ncclCommInitRankConfig");
  device.state().before_free = [state = state_.get()] { state->finish(); };
  device.state().while_waiting = [state = state_.get()](double seconds) { state->wait(seconds); };
}

void Nccl::set_timeout(double seconds) {
  state_->timeout = seconds;
}

// After a failure of any rank, a synchronization might never return, so the communicator is
// aborted, as it is when the work does not end.
Nccl::~Nccl() {
  const auto& library = cuda::NcclLibrary::get();
  cudaSetDevice(state_->device->index());  // unchecked
  if (std::uncaught_exceptions() == 0) state_->finish();
  state_->detach();
  if (!state_->communicator) return;
  ncclResult_t later = ncclSuccess;
  library.ncclCommGetAsyncError(state_->communicator, &later);
  const auto finalized = [&] {
    ncclResult_t status = library.ncclCommFinalize(state_->communicator);
    return state_->wait_until_complete(status) && status == ncclSuccess;
  };
  const bool whole = later == ncclSuccess && std::uncaught_exceptions() == 0 &&
                     cudaStreamSynchronize(state_->collective_stream) == cudaSuccess &&
                     cudaStreamSynchronize(state_->stream) == cudaSuccess && finalized();
  if (whole) library.ncclCommDestroy(std::exchange(state_->communicator, nullptr));
}

void Nccl::begin_sum(float* values, std::int64_t n) {
  state_->check_error();
  state_->order_streams(state_->stream, state_->collective_stream);
  const auto& library = cuda::NcclLibrary::get();
  const ncclResult_t begun =
      library.ncclAllReduce(values, values, static_cast<std::size_t>(n), ncclFloat32, ncclSum,
                            state_->communicator, state_->collective_stream);
  cuda::check(state_->completed(begun), "ncclAllReduce");
}

void Nccl::finish_sums() {
  state_->check_error();
  state_->order_streams(state_->collective_stream, state_->stream);
}

void Nccl::broadcast(float* values, std::int64_t n) {
  state_->check_error();
  const auto& library = cuda::NcclLibrary::get();
  const ncclResult_t begun =
      library.ncclBroadcast(values, values, static_cast<std::size_t>(n), ncclFloat32, 0,
                            state_->communicator, state_->stream);
  cuda::check(state_->completed(begun), "ncclBroadcast");
}

}  // namespace nmt
