#pragma once

#include "config/precision.h"
#include "tensor/cuda_device.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

namespace nmt {
namespace cuda {

class Blas;
class BlasLt;
class Download;
class GraphCache;
class PersistentPlans;
class Staging;

/// A kernel that finds an invalid value writes this record for the host; the first fault wins. The
/// record is in memory that both can access. A thread claims the record, writes the values, and
/// writes the kind last. The host reads a record only if it has a kind: a later kernel may be
/// writing a record without one.
struct Fault {
  int claimed;  ///< 0 or 1
  int kind;     ///< FaultKind
  long long value, limit;
};
enum FaultKind : int { no_fault = 0, symbol_outside_vocabulary = 1 };

/// A buffer that grows to the largest size requested.
class Workspace {
 public:
  ~Workspace();
  void swap(Workspace& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  void* get(CudaDevice::State& state, std::size_t bytes);
  std::size_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The resources of the second of two concurrent branches. They are exchanged with those of the
/// state while that branch is being queued.
struct Branch {
  cudaStream_t stream = nullptr;
  cudaEvent_t forked = nullptr, joined = nullptr;  ///< its begin and end
  Workspace workspace, rounded, counters;
  std::shared_ptr<Blas> blas;
  std::shared_ptr<BlasLt> blas_lt;
  bool open = false, current = false;
};

}  // namespace cuda

struct CudaDevice::State {
  int index = 0;
  std::string name;
  int multiprocessors = 0, compute_capability = 0;  ///< 10 major + minor
  bool is_cooperative = false;                      ///< has cooperative launches
  /// By kernel: dynamic shared memory that raise_shared() has allowed.
  std::map<const void*, std::size_t> allowed_shared;
  std::size_t max_shared = 0, shared_per_multiprocessor = 0;  ///< bytes; of a block
  Precision precision = Precision::float32;
  cudaStream_t stream = nullptr;
  cuda::Fault* fault = nullptr;         ///< pinned; the host's address
  cuda::Fault* device_fault = nullptr;  ///< the device's address of it
  cuda::Workspace workspace;
  cuda::Workspace table;             ///< the optimizer's slices
  std::vector<char> table_contents;  ///< the bytes in `table`
  cuda::Workspace counters;          ///< of barriers of blocks, cleared when it was made
  /// Inputs of a product that are rounded or gathered, and results that are scattered.
  cuda::Workspace rounded;
  std::shared_ptr<cuda::Staging> staging;    ///< of small uploads, made at the first
  std::shared_ptr<cuda::Download> download;  ///< made at the first
  std::int64_t waits = 0;                    ///< times the host waited for the device
  cudaEvent_t reached = nullptr;             ///< recorded for such a wait
  std::shared_ptr<cuda::Blas> blas;          ///< made at the first product
  std::shared_ptr<cuda::BlasLt> blas_lt;     ///< made at the first product with a bias
  cuda::Branch branch;                       ///< the second branch, between fork() and join()
  PersistentUse persistent = PersistentUse::off;
  std::int64_t max_slice_channels = 0;
  /// Made at the first pass. Not a shared_ptr: the emulator cannot compile reference counts in
  /// kernel files.
  std::unique_ptr<cuda::PersistentPlans, void (*)(cuda::PersistentPlans*)> plans{nullptr, nullptr};
  bool with_chunks = true;
  bool with_graphs = true;
  std::int64_t max_graph_calls = default_graph_calls;  ///< of all graphs
  std::shared_ptr<cuda::GraphCache> graphs;            ///< made at the first repeat()
  cuda::GraphCache* recording = nullptr;  ///< receives every call while repeat() runs its work
  /// Called with the seconds so far while the host waits for the device; may throw. Set where the
  /// device may never finish, since it waits for other processes.
  std::function<void(double)> while_waiting;
  /// Called before memory is freed, because the driver then waits for all streams. Returns when no
  /// work of the device waits for other processes. Does not throw. Set together with while_waiting.
  std::function<void()> before_free;
};

namespace cuda {

/// Makes a device current in this thread, as calls of the runtime and of the libraries expect.
void make_current(int device);

/// The state of the device, which becomes current: a process may use several.
inline CudaDevice::State& state_of(const Cuda& cuda) {
  CudaDevice::State& state = cuda.device->state();
  make_current(state.index);
  return state;
}

/// Raises the dynamic shared memory that a kernel may have on the current device, number `device`,
/// to at least `bytes`, and returns it. The limit belongs to the kernel, not to a CudaDevice: it is
/// never lowered, since graphs and other devices of the same GPU launch the kernel with more.
std::size_t raise_shared(int device, const void* kernel, std::size_t bytes);

/// Waits for the event, which has been recorded; calls state.while_waiting.
void wait_for(CudaDevice::State& state, cudaEvent_t event);

/// Waits for the device's stream; calls state.while_waiting.
void wait_for_stream(CudaDevice::State& state);

/// Scratch memory of the stream, `count` elements, valid until the next call: later kernels of the
/// stream reuse it.
template <class T>
T* workspace(const Cuda& cuda, std::int64_t count) {
  CudaDevice::State& state = state_of(cuda);
  return static_cast<T*>(state.workspace.get(state, static_cast<std::size_t>(count) * sizeof(T)));
}

/// Counters of barriers of blocks (persistent/blocks_barrier.h), each in a cache line
/// of its own: at n * counter_stride for n < max_counters. The kernels of a stream run one after
/// the other and share its counters.
constexpr std::int64_t max_counters = 512, counter_stride = 32;
unsigned* barrier_counters(const Cuda& cuda);

}  // namespace cuda
}  // namespace nmt
