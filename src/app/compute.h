#pragma once

#include "config/compute_spec.h"
#include "config/device.h"
#include "core/thread_pool.h"
#include "kernels/recurrent/cudnn.h"
#include "model/model.h"
#include "tensor/context.h"
#include "tensor/cuda_device.h"

#include <memory>
#include <string>

namespace nmt::app {

/// The processor's name as the system tells it; "" where it does not.
std::string processor();

/// Where a program computes: its threads, and the GPU that --device names or, with "auto", finds.
class Compute {
 public:
  /// Errors (usage): no such device, with the reason; int8 on a GPU; tf32, cuDNN or "on" for CUDA
  /// graphs on the CPU; cuDNN in bfloat16 or not installed.
  explicit Compute(const ComputeSpec& spec);
  /// Error (usage): the precision does not train on this device; the CPU trains in float32 alone.
  void check_training() const;

  ThreadPool& pool() { return pool_; }
  Cpu cpu() { return {&pool_}; }
  /// The GPU, or null on the CPU.
  CudaDevice* cuda() { return cuda_.get(); }
  /// An arena of the device's memory, for context(). Both live no longer than this.
  std::unique_ptr<Arena> new_arena();
  /// The same for training, whose batches differ in shape: on the CPU the tensors of a step share
  /// chunks of a gigabyte, of which memory is what they touch. In chunks of their own, those that
  /// one batch leaves idle do not fit the next one's.
  std::unique_ptr<Arena> new_training_arena();
  Context context(Arena& arena);
  /// The library for a training context's products, null for own tiles; logged. Errors (usage):
  /// oneDNN is asked for and is not installed, or on a GPU.
  const kernels::ProductLibrary* products() const;
  /// The GPU's memory, for a last log line: "GPU memory: 812 MB of tensors at most, ..."; empty on
  /// the CPU.
  std::string memory_used(const Arena& arena) const;
  /// What the first log line of a program says: "nmt-translate 0.1.0 on cpu (AMD EPYC 7763), 2
  /// threads, x86-64-v3 (AVX2), float32", or "nmt-train 0.1.0 on cuda:0 (NVIDIA H200, compute
  /// capability 9.0), 2 threads, ...".
  std::string describe(const std::string& program) const;

 private:
  ThreadPool pool_;
  ProductChoice products_;
  Precision precision_;
  std::unique_ptr<CudaDevice> cuda_;       // null: the CPU
  std::unique_ptr<kernels::Cudnn> cudnn_;  // null: our own recurrent kernels
  std::string why_;                        // "auto" took the CPU because of
};

/// Says in the log which layers of a model cuDNN runs, where the model's context carries cuDNN.
/// Error (usage): none.
void tell_recurrences(const Model& model);

}  // namespace nmt::app
