#pragma once

#include "config/precision.h"
#include "tensor/cuda_device.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

namespace nmt {
namespace cuda {

class Blas;
class BlasLt;
class Dnn;
class Graphs;
class Staging;

/// What a kernel that meets a wrong value leaves for the host: the first one wins. Lies in memory
/// that both can see.
struct Fault {
  int kind;  ///< FaultKind
  long long value, limit;
};
enum FaultKind : int { no_fault = 0, symbol_outside_vocabulary = 1 };

/// A buffer that grows to the largest size ever asked for.
class Workspace {
 public:
  ~Workspace();
  void swap(Workspace& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  void* get(CudaDevice::State& state, std::size_t bytes);

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

/// What work needs that runs beside other work of its device: while it is asked for, its own stands
/// in the state.
struct Branch {
  cudaStream_t stream = nullptr;
  cudaEvent_t forked = nullptr, joined = nullptr;  ///< where it begins and ends
  Workspace workspace, rounded;
  std::shared_ptr<Blas> blas;
  std::shared_ptr<BlasLt> blas_lt;
  bool open = false, current = false;
};

}  // namespace cuda

struct CudaDevice::State {
  int index = 0;
  std::string name;
  int multiprocessors = 0;
  Precision precision = Precision::float32;
  cudaStream_t stream = nullptr;
  cuda::Fault* fault = nullptr;         ///< pinned, seen by the host and
  cuda::Fault* device_fault = nullptr;  ///< by kernels
  cuda::Workspace workspace;
  cuda::Workspace table;             ///< the optimizer's slices
  std::vector<char> table_contents;  ///< what lies there
  cuda::Workspace
      rounded;  ///< inputs of a product that are rounded or gathered, and results that are spread
  std::shared_ptr<cuda::Staging> staging;  ///< of small uploads, made at the first
  std::int64_t waits = 0;                  ///< of the host for the device
  std::shared_ptr<cuda::Blas> blas;        ///< made at the first product
  std::shared_ptr<cuda::BlasLt> blas_lt;   ///< made at the first product with a bias
  std::shared_ptr<cuda::Dnn> dnn;          ///< cuDNN, where it was opened
  cuda::Branch branch;                     ///< the second one, between fork() and join()
  bool with_graphs = true;
  std::shared_ptr<cuda::Graphs> graphs;  ///< made at the first repeat()
  cuda::Graphs* recording = nullptr;     ///< hears of every call, while work of repeat() is done
};

namespace cuda {

inline CudaDevice::State& state_of(const Cuda& cuda) {
  return cuda.device->state();
}

/// Scratch memory of the stream, `count` elements, valid until the next call. Kernels that run
/// later in the stream may use it for something else.
template <class T>
T* workspace(const Cuda& cuda, std::int64_t count) {
  CudaDevice::State& state = state_of(cuda);
  return static_cast<T*>(state.workspace.get(state, static_cast<std::size_t>(count) * sizeof(T)));
}

}  // namespace cuda
}  // namespace nmt
