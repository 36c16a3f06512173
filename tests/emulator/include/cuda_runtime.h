#pragma once

// The CUDA names that cuda/ uses, for the emulator: included instead of the toolkit's header of
// this name. No toolkit is needed. emulator.h says what is checked.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __forceinline__ [[gnu::always_inline]] inline
#define __launch_bounds__(...)
#define __restrict__ __restrict

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

extern dim3 threadIdx, blockIdx, blockDim, gridDim;

#include "emulator.h"

// ---- in kernels ----

inline void __syncthreads(std::source_location at = std::source_location::current()) {
  nmt::emulator::barrier(at);
}
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu,
                       std::source_location at = std::source_location::current()) {
  nmt::emulator::warp_barrier(mask, at);
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}

// Each lane passes a value and the lane from which it reads.
template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32,
              std::source_location at = std::source_location::current()) {
  return nmt::emulator::shuffle(mask, value, nmt::emulator::Shuffle::from, lane, width, at);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32,
                 std::source_location at = std::source_location::current()) {
  return nmt::emulator::shuffle(mask, value, nmt::emulator::Shuffle::up, static_cast<int>(distance),
                                width, at);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32,
                   std::source_location at = std::source_location::current()) {
  return nmt::emulator::shuffle(mask, value, nmt::emulator::Shuffle::down,
                                static_cast<int>(distance), width, at);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32,
                  std::source_location at = std::source_location::current()) {
  return nmt::emulator::shuffle(mask, value, nmt::emulator::Shuffle::exclusive_or, bits, width, at);
}
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              std::source_location at = std::source_location::current()) {
  return nmt::emulator::ballot(mask, predicate != 0, at);
}
inline int __any_sync(unsigned mask, int predicate,
                      std::source_location at = std::source_location::current()) {
  return nmt::emulator::ballot(mask, predicate != 0, at) != 0;
}
inline int __all_sync(unsigned mask, int predicate,
                      std::source_location at = std::source_location::current()) {
  return nmt::emulator::ballot(mask, predicate != 0, at) == mask;
}

template <class T>
T __ldg(const T* address) {
  return *address;
}
template <class T>
T __ldcg(const T* address) {
  return *address;
}
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
inline float2 make_float2(float x, float y) {
  return {x, y};
}
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline int __popc(unsigned x) {
  return __builtin_popcount(x);
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline int __clz(int x) {
  return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x));
}
inline float __int_as_float(int x) {
  return __builtin_bit_cast(float, x);
}
inline int __float_as_int(float x) {
  return __builtin_bit_cast(int, x);
}
inline float rsqrtf(float x) {
  return 1.0f / std::sqrt(x);
}

// Only one thread runs at a time, so a read and a write without a switch in between are atomic. Not
// inline, so that their accesses are told from ordinary ones.
#define NMT_EMULATED_ATOMICS(T)      \
  T atomicAdd(T* address, T value);  \
  T atomicMax(T* address, T value);  \
  T atomicMin(T* address, T value);  \
  T atomicExch(T* address, T value); \
  T atomicCAS(T* address, T expected, T value)
NMT_EMULATED_ATOMICS(int);
NMT_EMULATED_ATOMICS(unsigned);
NMT_EMULATED_ATOMICS(unsigned long long);
NMT_EMULATED_ATOMICS(float);
NMT_EMULATED_ATOMICS(double);
#undef NMT_EMULATED_ATOMICS

// ---- on the host ----

enum cudaError_t : int {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorCooperativeLaunchTooLarge = 720,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureUnmatched = 903,
  cudaErrorStreamCaptureUnjoined = 904,
  cudaErrorStreamCaptureIsolation = 905,
  cudaErrorCapturedEvent = 907,
  cudaErrorGraphExecUpdateFailure = 910
};
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
using cudaStream_t = struct EmulatedStream*;
using cudaEvent_t = struct EmulatedEvent*;
constexpr unsigned cudaStreamNonBlocking = 1, cudaHostAllocDefault = 0, cudaHostAllocMapped = 2,
                   cudaEventDisableTiming = 2;
#define CUDART_VERSION 13000

struct cudaDeviceProp {
  char name[256];
  int major, minor, multiProcessorCount;
  std::size_t sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
  int cooperativeLaunch;
};

const char* cudaGetErrorString(cudaError_t status);
const char* cudaGetErrorName(cudaError_t status);
cudaError_t cudaGetLastError();
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
cudaError_t cudaMalloc(void** data, std::size_t bytes);
template <class T>
cudaError_t cudaMalloc(T** data, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(data), bytes);
}
cudaError_t cudaFree(void* data);
cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned flags);
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags);
cudaError_t cudaFreeHost(void* data);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);

// ---- graphs (stream.cpp) ----

using cudaGraph_t = struct EmulatedGraph*;
using cudaGraphNode_t = struct EmulatedNode*;
using cudaGraphExec_t = struct EmulatedGraphExec*;
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed
};
enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone,
  cudaStreamCaptureStatusActive,
  cudaStreamCaptureStatusInvalidated
};
struct cudaGraphEdgeData {};
struct cudaGraphExecUpdateResultInfo {
  cudaGraphNode_t errorNode;
};
struct cudaKernelNodeParams {
  void* func;
  dim3 gridDim, blockDim;
  unsigned sharedMemBytes;
  void** kernelParams;
  void** extra;
};

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, std::size_t* count);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result);
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters);
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

/// Of the kernel on the current device; the value may also become smaller.
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);
template <class... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute,
                                 int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}

namespace nmt::emulator {
struct DeferredLaunch;
/// Whether the stream was made on the thread's current device: a launch elsewhere fails.
bool is_on_current_device(cudaStream_t stream);
/// Whether the stream's calls become nodes of a graph.
bool is_captured(cudaStream_t stream);
/// Whether the stream's calls run after they return: captured, of a late stream, or behind a call
/// that is not ready.
bool is_deferred(cudaStream_t stream);
cudaError_t defer(cudaStream_t stream, const DeferredLaunch& launch);

template <class... Parameters>
struct Call {
  void (*kernel)(Parameters...);
  void** arguments;
};
/// Calls the kernel for one thread with copies of the arguments. Reading the launch's arguments is
/// not an access of the kernel.
template <class... Parameters, std::size_t... I>
[[gnu::no_sanitize("thread")]] void call(const Call<Parameters...>* launch,
                                         std::index_sequence<I...>) {
  launch->kernel(*static_cast<std::remove_reference_t<Parameters>*>(launch->arguments[I])...);
}

template <class... Parameters>
cudaError_t start(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments,
                  std::size_t shared, bool cooperative) {
  Call<Parameters...> launch{kernel, arguments};
  const auto thread = [](void* data) {
    call(static_cast<const Call<Parameters...>*>(data), std::index_sequence_for<Parameters...>());
  };
  return run(grid, block, shared, cooperative, thread, &launch);
}

/// A launch that runs later, with copies of the arguments. No reference counting here, since this
/// code is compiled with the hooks of kernels.
struct DeferredLaunch {
  void* kernel;
  dim3 grid, block;
  std::size_t shared;
  bool cooperative;
  void** arguments;
  const std::size_t* sizes;
  std::size_t count;
  cudaError_t (*start)(void* kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                       bool cooperative);
};

template <class... Parameters>
cudaError_t start_deferred(void* kernel, dim3 grid, dim3 block, void** arguments,
                           std::size_t shared, bool cooperative) {
  return start(reinterpret_cast<void (*)(Parameters...)>(kernel), grid, block, arguments, shared,
               cooperative);
}

template <class... Parameters>
cudaError_t launch_or_defer(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments,
                            std::size_t shared, bool cooperative, cudaStream_t stream) {
  if (!is_on_current_device(stream)) return cudaErrorInvalidResourceHandle;
  const cudaError_t status = check_launch(reinterpret_cast<const void*>(kernel), shared);
  if (status != cudaSuccess) return status;
  if (is_deferred(stream)) {
    static constexpr std::size_t sizes[] = {sizeof(Parameters)..., 0};
    return defer(stream, {reinterpret_cast<void*>(kernel), grid, block, shared, cooperative,
                          arguments, sizes, sizeof...(Parameters), start_deferred<Parameters...>});
  }
  return start(kernel, grid, block, arguments, shared, cooperative);
}
}  // namespace nmt::emulator

/// `Function`: the type of the kernel, as in the template of the CUDA runtime.
template <class Function>
cudaError_t cudaLaunchKernel(Function* kernel, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared, cudaStream_t stream) {
  return nmt::emulator::launch_or_defer(kernel, grid, block, arguments, shared, false, stream);
}
template <class Function>
cudaError_t cudaLaunchCooperativeKernel(Function* kernel, dim3 grid, dim3 block, void** arguments,
                                        std::size_t shared, cudaStream_t stream) {
  return nmt::emulator::launch_or_defer(kernel, grid, block, arguments, shared, true, stream);
}
template <class Function>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function* kernel,
                                                          int threads, std::size_t shared) {
  const void* const name = reinterpret_cast<const void*>(kernel);
  const bool fits = shared <= nmt::emulator::shared_limit(name);
  *blocks =
      fits ? nmt::emulator::resident_blocks(name, static_cast<std::size_t>(threads), shared) : 0;
  return cudaSuccess;
}
