// The runtime's memory functions: device memory is host memory that host code must not access.

#include "dry/dry_run.h"
#include "running.h"

#include <cstdlib>
#include <map>
#include <set>

#include <sys/mman.h>

namespace nmt::emulator {
namespace {

struct Memory {
  std::map<const char*, Region> regions;  // keyed by their end
  std::map<const char*, Region> pinned;   // host memory that kernels may access too
  std::set<const char*> reserved;         // regions of a dry run, which are not backed
  std::size_t used = 0;
  Region last;
};
Memory memory;

// A number from the environment, for tests of whole programs: NMT_EMULATED_MEMORY_MB,
// NMT_EMULATED_DEVICES, NMT_EMULATED_MULTIPROCESSORS.
std::size_t setting(const char* name, std::size_t usual) {
  const char* const text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : usual;
}
const std::size_t usual_memory = setting("NMT_EMULATED_MEMORY_MB", 1024) << 20;
std::size_t total_memory() {
  return is_dry() ? dry_device().memory : usual_memory;
}

// Addresses before a region of a dry run that no region has: 2^31 elements of 8 bytes. An index
// that has wrapped in 32 bits is negative, and would reach other regions.
constexpr std::size_t before_region = std::size_t{1} << 34;

// From malloc, so that the first byte past the end is out of bounds; filled with NaN. In a dry run
// reserved only.
char* obtain(std::size_t bytes) {
  if (is_dry()) {
    void* const all = mmap(nullptr, before_region + bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return nullptr;
    char* const block = static_cast<char*>(all) + before_region;
    if (mprotect(block, bytes, PROT_READ | PROT_WRITE) != 0) {
      munmap(all, before_region + bytes);
      return nullptr;
    }
    memory.reserved.insert(block);
    return block;
  }
  char* const block = static_cast<char*>(std::malloc(bytes));
  if (block) std::memset(block, 0xFF, bytes);
  return block;
}
void give_back(const Region& region) {
  char* const block = const_cast<char*>(region.begin);
  if (memory.reserved.erase(block) > 0)
    munmap(block - before_region, before_region + region.size());
  else
    std::free(block);
}

Region find(const std::map<const char*, Region>& regions, const void* p) {
  const auto found = regions.upper_bound(static_cast<const char*>(p));
  return found == regions.end() || !found->second.has(p) ? Region{} : found->second;
}

}  // namespace

int multiprocessors() {
  return is_dry() ? dry_device().multiprocessors
                  : static_cast<int>(setting("NMT_EMULATED_MULTIPROCESSORS", 2));
}

Region device_region(const void* p) {
  if (memory.last.has(p)) return memory.last;
  const Region found = find(memory.regions, p);
  if (found.begin) memory.last = found;
  return found;
}

Region pinned_region(const void* p) {
  return find(memory.pinned, p);
}

#if defined(__SANITIZE_ADDRESS__)
void open_device_memory() {
  for (const auto& [end, region] : memory.regions)
    __asan_unpoison_memory_region(region.begin, region.size());
}
void close_device_memory() {
  for (const auto& [end, region] : memory.regions)
    __asan_poison_memory_region(region.begin, region.size());
}
#else
void open_device_memory() {}
void close_device_memory() {}
#endif

}  // namespace nmt::emulator

using namespace nmt::emulator;

const char* cudaGetErrorString(cudaError_t status) {
  switch (status) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    case cudaErrorNotReady: return "device not ready";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorCooperativeLaunchTooLarge: return "too many blocks in cooperative launch";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureUnmatched: return "capture was not initiated in this stream";
    case cudaErrorStreamCaptureUnjoined: return "capturing stream has unjoined work";
    case cudaErrorStreamCaptureIsolation:
      return "dependency created on uncaptured work in another stream";
    case cudaErrorCapturedEvent:
      return "operation not permitted on an event last recorded in a capturing stream";
    case cudaErrorGraphExecUpdateFailure:
      return "the graph update was not performed because it included changes which violated "
             "constraints specific to "
             "instantiated graph update";
  }
  return "unknown error";
}

const char* cudaGetErrorName(cudaError_t status) {
  switch (status) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInsufficientDriver: return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorCooperativeLaunchTooLarge: return "cudaErrorCooperativeLaunchTooLarge";
    case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated: return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureUnmatched: return "cudaErrorStreamCaptureUnmatched";
    case cudaErrorStreamCaptureUnjoined: return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureIsolation: return "cudaErrorStreamCaptureIsolation";
    case cudaErrorCapturedEvent: return "cudaErrorCapturedEvent";
    case cudaErrorGraphExecUpdateFailure: return "cudaErrorGraphExecUpdateFailure";
  }
  return "cudaErrorUnknown";
}

cudaError_t cudaGetLastError() {
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = static_cast<int>(setting("NMT_EMULATED_DEVICES", 1));
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  int count = 0;
  cudaGetDeviceCount(&count);
  if (device < 0 || device >= count) return cudaErrorInvalidDevice;
  *properties = {"emulator", 9, 0, multiprocessors(), max_shared, shared_per_multiprocessor, 1};
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  int count = 0;
  cudaGetDeviceCount(&count);
  if (device < 0 || device >= count) return cudaErrorInvalidDevice;
  running.has_device = true;
  running.device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  running.has_device = true;
  *device = running.device;
  return cudaSuccess;
}

// CUDA does not say that a capture allows it.
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (counters().lost) return cudaErrorIllegalAddress;
  if (breaks_captures()) return cudaErrorStreamCaptureUnsupported;
  *total = total_memory();
  *free = total_memory() - memory.used;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  if (breaks_captures()) return cudaErrorStreamCaptureUnsupported;
  if (counters().failing_allocations > 0) {
    --counters().failing_allocations;
    return cudaErrorMemoryAllocation;
  }
  if (bytes == 0 || bytes > total_memory() - memory.used)
    return bytes == 0 ? cudaErrorInvalidValue : cudaErrorMemoryAllocation;
  char* const block = obtain(bytes);
  if (!block) return cudaErrorMemoryAllocation;
  const Region region{block, block + bytes};
  memory.regions[region.end] = region;
  memory.used += bytes;
  forget(region);
  close_device_memory();
  *data = block;
  return cudaSuccess;
}

cudaError_t cudaFree(void* data) {
  if (!data) return cudaSuccess;
  if (breaks_captures()) return cudaErrorStreamCaptureUnsupported;
  if (const cudaError_t status = finish_streams(); status != cudaSuccess) return status;
  const Region region = device_region(data);
  if (region.begin != data) return cudaErrorInvalidValue;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(region.begin, region.size());
#endif
  memory.regions.erase(region.end);
  memory.used -= region.size();
  memory.last = {};
  forget(region);
  give_back(region);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned) {
  if (breaks_captures()) return cudaErrorStreamCaptureUnsupported;
  char* block = static_cast<char*>(std::malloc(bytes));
  if (!block) return cudaErrorMemoryAllocation;
  memory.pinned[block + bytes] = {block, block + bytes};
  *data = block;
  return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* data) {
  if (breaks_captures()) return cudaErrorStreamCaptureUnsupported;
  if (const cudaError_t status = finish_streams(); status != cudaSuccess) return status;
  const Region region = pinned_region(data);
  if (region.begin != data) return cudaErrorInvalidValue;
  memory.pinned.erase(region.end);
  std::free(data);
  return cudaSuccess;
}

namespace {

template <class T, class Change>
T atomic(T* address, Change change) {
  note_atomic(address, sizeof(T));
  const T before = *address;
  *address = change(before);
  return before;
}

}  // namespace

#define NMT_EMULATED_ATOMICS(T)                                             \
  T atomicAdd(T* address, T value) {                                        \
    return atomic(address, [=](T x) { return x + value; });                 \
  }                                                                         \
  T atomicMax(T* address, T value) {                                        \
    return atomic(address, [=](T x) { return x > value ? x : value; });     \
  }                                                                         \
  T atomicMin(T* address, T value) {                                        \
    return atomic(address, [=](T x) { return x < value ? x : value; });     \
  }                                                                         \
  T atomicExch(T* address, T value) {                                       \
    return atomic(address, [=](T) { return value; });                       \
  }                                                                         \
  T atomicCAS(T* address, T expected, T value) {                            \
    return atomic(address, [=](T x) { return x == expected ? value : x; }); \
  }
NMT_EMULATED_ATOMICS(int)
NMT_EMULATED_ATOMICS(unsigned)
NMT_EMULATED_ATOMICS(unsigned long long)
NMT_EMULATED_ATOMICS(float)
NMT_EMULATED_ATOMICS(double)
