#include "cuda/runtime/check.h"
#include "cuda/runtime/graph.h"
#include "cuda/runtime/memory.h"
#include "cuda/runtime/staging.h"
#include "cuda/runtime/state.h"

#include <atomic>
#include <utility>

namespace nmt {
namespace cuda {

void make_current(int device) {
  int current = 0;
  NMT_CUDA_CHECK(cudaGetDevice(&current));
  if (current != device) NMT_CUDA_CHECK(cudaSetDevice(device));
}

namespace {

// Why this build cannot use a device; "" where it can. NMT_CUDA_OLDEST is the lowest compute
// capability of this build: 10 major + minor.
std::string defect_of(int index, const cudaDeviceProp& properties) {
  if (10 * properties.major + properties.minor >= NMT_CUDA_OLDEST) return "";
  return fmt::format(
      "CUDA device {} ({}) has compute capability {}.{}; this build needs {}.{} or later", index,
      properties.name, properties.major, properties.minor, NMT_CUDA_OLDEST / 10,
      NMT_CUDA_OLDEST % 10);
}

}  // namespace
}  // namespace cuda

int CudaDevice::count(std::string& why) {
  int driver = 0, devices = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    why = "no CUDA driver is installed";
    return 0;
  }
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaSuccess && devices > 0) return devices;
  cudaGetLastError();
  if (status == cudaErrorInsufficientDriver)
    why = fmt::format(
        "the CUDA driver is for CUDA {}.{}; this build needs one for CUDA {}.{} or later",
        driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  else
    why = status == cudaSuccess || status == cudaErrorNoDevice
              ? "there is no CUDA device"
              : fmt::format("cudaGetDeviceCount: {}", cudaGetErrorString(status));
  return 0;
}

bool CudaDevice::is_usable(int index, std::string& why) {
  if (count(why) <= index) return false;
  cudaDeviceProp properties{};
  if (const cudaError_t status = cudaGetDeviceProperties(&properties, index);
      status != cudaSuccess) {
    cudaGetLastError();
    why = fmt::format("cudaGetDeviceProperties: {}", cudaGetErrorString(status));
  } else {
    why = cuda::defect_of(index, properties);
  }
  return why.empty();
}

CudaDevice::CudaDevice(int index, std::optional<Precision> precision)
    : state_(std::make_unique<State>()) {
  NMT_CHECK(precision != Precision::int8, "int8 is for the CPU");
  std::string why;
  const int devices = count(why);
  if (devices == 0) fail(ExitStatus::usage, "device=cuda: {}", why);
  if (index < 0 || index >= devices)
    fail(ExitStatus::usage, "device=cuda:{}: there {} {} CUDA device{}, from 0 to {}", index,
         devices == 1 ? "is" : "are", devices, devices == 1 ? "" : "s", devices - 1);
  State& s = *state_;
  s.index = index;
  cudaDeviceProp properties{};
  NMT_CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
  s.precision =
      precision.value_or(properties.major >= 8 ? Precision::bfloat16 : Precision::float32);
  if (const std::string defect = cuda::defect_of(index, properties); !defect.empty())
    fail(ExitStatus::usage, "{}", defect);
  s.name = fmt::format("{}, compute capability {}.{}", properties.name, properties.major,
                       properties.minor);
  s.multiprocessors = properties.multiProcessorCount;
  s.compute_capability = 10 * properties.major + properties.minor;
  s.is_cooperative = properties.cooperativeLaunch != 0;
  s.max_shared = properties.sharedMemPerBlockOptin;
  s.shared_per_multiprocessor = properties.sharedMemPerMultiprocessor;
  cuda::make_current(index);
  NMT_CUDA_CHECK(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));
  void *fault = nullptr, *device_fault = nullptr;
  try {  // a throwing constructor runs no destructor
    NMT_CUDA_CHECK(cudaHostAlloc(&fault, sizeof(cuda::Fault), cudaHostAllocMapped));
    NMT_CUDA_CHECK(cudaHostGetDevicePointer(&device_fault, fault, 0));
  } catch (...) {
    cudaFreeHost(fault);          // unchecked
    cudaStreamDestroy(s.stream);  // unchecked
    throw;
  }
  s.fault = new (fault) cuda::Fault{};
  s.device_fault = static_cast<cuda::Fault*>(device_fault);
}

CudaDevice::~CudaDevice() {
  cudaSetDevice(state_->index);  // unchecked
  cudaStreamSynchronize(state_->stream);
  state_->while_waiting = nullptr;  // it may throw
  state_->staging.reset();
  state_->download.reset();
  state_->graphs.reset();
  // Library handles before their streams.
  cuda::Branch& branch = state_->branch;
  for (std::shared_ptr<cuda::Blas>* blas : {&state_->blas, &branch.blas}) blas->reset();
  for (std::shared_ptr<cuda::BlasLt>* blas : {&state_->blas_lt, &branch.blas_lt}) blas->reset();
  for (cuda::Workspace* workspace :
       {&state_->workspace, &state_->table, &state_->counters, &state_->rounded, &branch.workspace,
        &branch.rounded, &branch.counters})
    cuda::Workspace().swap(*workspace);
  if (state_->reached) cudaEventDestroy(state_->reached);
  if (branch.stream) {
    for (const cudaEvent_t event : {branch.forked, branch.joined}) cudaEventDestroy(event);
    cudaStreamDestroy(branch.stream);
  }
  cudaFreeHost(state_->fault);
  cudaStreamDestroy(state_->stream);
}

int CudaDevice::index() const {
  return state_->index;
}

Precision CudaDevice::precision() const {
  return state_->precision;
}

const std::string& CudaDevice::name() const {
  return state_->name;
}

CudaDevice::Memory CudaDevice::memory() const {
  return cuda::memory_of(*state_);
}

std::unique_ptr<MemorySource> CudaDevice::memory_source() {
  return cuda::memory_source(*this);
}

void CudaDevice::to_device(void* device, const void* host, std::size_t bytes) {
  NMT_CHECK(bytes == 0 || !state_->branch.open,
            "host values cannot be uploaded between fork() and join()");
  cuda::make_current(state_->index);
  if (bytes == 0 || (state_->recording && !state_->recording->on_upload(device, host, bytes)))
    return;
  if (bytes <= cuda::Staging::max_bytes) {
    if (!state_->staging) state_->staging = std::make_shared<cuda::Staging>(*state_);
    return state_->staging->copy(device, host, bytes);
  }
  // From pageable memory: the driver stages the bytes before the call returns.
  NMT_CUDA_CHECK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, state_->stream));
}

void CudaDevice::from_device(void* host, const void* device, std::size_t bytes) {
  cuda::make_current(state_->index);
  if (state_->recording) state_->recording->forbid_capture("a copy to the host");
  if (bytes > 0)
    NMT_CUDA_CHECK(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, state_->stream));
  synchronize();
}

void CudaDevice::begin_download(const void* device, std::size_t bytes) {
  NMT_CHECK(bytes <= max_pending_download, "{} bytes; a pending download has at most {}", bytes,
            max_pending_download);
  cuda::make_current(state_->index);
  if (state_->recording) state_->recording->forbid_capture("a copy to the host");
  if (!state_->download) state_->download = std::make_shared<cuda::Download>(*state_);
  state_->download->begin(device, bytes);
}

void CudaDevice::finish_download(void* host, std::size_t bytes) {
  NMT_CHECK(state_->download, "no download has begun");
  cuda::make_current(state_->index);
  if (state_->recording) state_->recording->forbid_capture("waiting for the device");
  ++state_->waits;
  state_->download->finish(host, bytes);
  check_fault();
}

void CudaDevice::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  cuda::queue(
      handle(),
      {cuda::copy_call, cuda::as_integer(to), cuda::as_integer(from),
       static_cast<std::int64_t>(bytes)},
      [&] {
        NMT_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, state_->stream));
      });
}

void CudaDevice::clear(void* data, std::size_t bytes) {
  if (bytes == 0) return;
  cuda::queue(handle(),
              {cuda::clear_call, cuda::as_integer(data), static_cast<std::int64_t>(bytes)},
              [&] { NMT_CUDA_CHECK(cudaMemsetAsync(data, 0, bytes, state_->stream)); });
}

std::int64_t CudaDevice::waits() const {
  return state_->waits;
}

void CudaDevice::set_graphs(bool on, std::int64_t max_calls) {
  state_->with_graphs = on;
  state_->max_graph_calls = max_calls;
}

void CudaDevice::set_persistent(PersistentUse use, std::int64_t max_channels) {
  state_->persistent = use;
  state_->max_slice_channels = max_channels;
  state_->plans.reset();
}

PersistentUse CudaDevice::persistent() const {
  return state_->persistent;
}

void CudaDevice::set_chunks(bool on) {
  state_->with_chunks = on;
}

void CudaDevice::repeat(std::span<const std::int64_t> key, const std::function<void()>& work) {
  cuda::make_current(state_->index);
  if (!state_->with_graphs || state_->recording) return work();  // nested: part of the outer work
  if (!state_->graphs) state_->graphs = std::make_shared<cuda::GraphCache>(*this);
  state_->graphs->repeat(key, work);
}

void CudaDevice::between_graphs(std::span<const std::int64_t> identity,
                                std::function<void()> work) {
  if (!state_->recording) return work();
  state_->recording->between_graphs(identity, std::move(work));
}

GraphCounts CudaDevice::graph_counts() const {
  return state_->graphs ? state_->graphs->counts() : GraphCounts{};
}

void CudaDevice::synchronize() {
  cuda::make_current(state_->index);
  if (state_->recording) state_->recording->forbid_capture("waiting for the device");
  ++state_->waits;
  cuda::wait_for_stream(*state_);
  check_fault();
}

void CudaDevice::check_fault() {
  const std::atomic_ref shared_kind(state_->fault->kind);
  const int kind = shared_kind.load(std::memory_order_acquire);
  if (kind == cuda::no_fault) return;
  const cuda::Fault fault = *state_->fault;
  shared_kind.store(cuda::no_fault, std::memory_order_relaxed);
  std::atomic_ref(state_->fault->claimed).store(0, std::memory_order_release);
  NMT_CHECK(kind != cuda::symbol_outside_vocabulary,
            "token id {} is not in a vocabulary of size {}", fault.value, fault.limit);
  NMT_FAIL("a CUDA kernel reported the unknown fault {}", kind);
}

}  // namespace nmt
