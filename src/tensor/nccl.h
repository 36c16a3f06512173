#pragma once

#include "tensor/cuda_device.h"

#include <array>
#include <cstdint>
#include <memory>

namespace nmt {

/// One of several GPUs, each of a process of its own, that exchange tensors by NVIDIA's NCCL. The
/// library is opened by name when the first object is made. All GPUs are asked for the same in the
/// same order; it takes place in the order of the device's other work. Errors (failed): a call of
/// NCCL, by its name, also one whose failure shows later.
class Nccl {
 public:
  /// What the GPUs know each other by: made by one, given to all.
  using Id = std::array<char, 128>;
  /// Error (usage): no libnccl, or no CUDA backend.
  static Id new_id();
  /// Waits for the others. The device outlives this object. Errors: as new_id().
  Nccl(CudaDevice& device, const Id& id, int rank, int size);
  ~Nccl();
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  /// values[i] becomes the sum of all GPUs' values[i]: of what the device's work so far has left
  /// there, beside its later work, until finish_sums(), behind which that waits.
  void begin_sum(float* values, std::int64_t n);
  void finish_sums();
  /// The first GPU's values for all.
  void broadcast(float* values, std::int64_t n);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nmt
