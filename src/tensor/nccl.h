#pragma once

#include "tensor/cuda_device.h"

#include <array>
#include <cstdint>
#include <memory>

namespace nmt {

/// One rank of several processes with a GPU each that exchange tensors through NVIDIA's NCCL. The
/// library is opened when the first object is made. Every rank must issue the same collectives in
/// the same order; they run in the order of the device's other work. Errors (failed): a failed call
/// of NCCL by its name, including asynchronous failures.
class Nccl {
 public:
  /// Identifies the group of ranks: one rank makes it, all ranks pass it.
  using Id = std::array<char, 128>;
  /// Error (usage): libnccl is missing, or the build has no CUDA backend.
  static Id new_id();
  /// Waits for the other ranks, as set_timeout() says. The device outlives this object. Errors: as
  /// new_id(); (failed) a rank has not come in time.
  Nccl(CudaDevice& device, const Id& id, int rank, int size, double timeout);
  ~Nccl();
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  /// Sets the timeout in seconds after which a wait of the host for other ranks, or for a device
  /// that waits for them, is an error; 0: no timeout. Failures that NCCL reports end the wait at
  /// once.
  void set_timeout(double seconds);
  /// All-reduce: values[i] becomes the sum over all ranks. It follows the work queued so far and
  /// runs concurrently with later work; work queued after finish_sums() waits for it.
  void begin_sum(float* values, std::int64_t n);
  void finish_sums();
  /// Copies the values of rank 0 to all ranks.
  void broadcast(float* values, std::int64_t n);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nmt
