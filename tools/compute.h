#pragma once

#include "nmt/config/device.h"
#include "nmt/core/thread_pool.h"
#include "nmt/tensor/context.h"
#include "nmt/tensor/cuda_device.h"

#include <memory>
#include <string>

namespace nmt::tools {

/// The processor's name as the system tells it; "" where it does not.
std::string processor();

/// The dtype of weights that --precision names: float32, bfloat16 or int8.
Dtype weights_of(const std::string& precision);

/// Where a program computes: its threads, and the GPU that --device names or, with "auto", finds.
class Compute {
 public:
  /// `device` as parse_device() reads it; `weights`, those of models frozen for inference: f32, or bf16 or i8 on the
  /// CPU. Errors (usage): no such device, said with the reason; other weights than f32 on a GPU.
  Compute(const std::string& device, int threads, Dtype weights = Dtype::f32);

  ThreadPool& pool() { return pool_; }
  Cpu cpu() { return {&pool_}; }
  /// The GPU, or null on the CPU.
  CudaDevice* cuda() { return cuda_.get(); }
  /// An arena of the device's memory, for context(). Both live no longer than this.
  std::unique_ptr<Arena> new_arena();
  Context context(Arena& arena);
  /// The library for a training context's products that --products asks for: "own" (null), "onednn" or "auto"; said in the log.
  /// Errors (usage): onednn where it is not installed, or on a GPU.
  const kernels::ProductLibrary* products(const std::string& choice) const;
  /// What the first log line of a program says: "nmt-translate 0.1.0 on cpu (AMD EPYC 7763), 2 threads, x86-64-v3 (AVX2),
  /// float32", or "nmt-train 0.1.0 on cuda:0 (NVIDIA H200, compute capability 9.0), 2 threads, ...".
  std::string describe(const std::string& program) const;

 private:
  ThreadPool pool_;
  Dtype weights_;
  std::unique_ptr<CudaDevice> cuda_;  // null: the CPU
  std::string why_;                   // "auto" took the CPU because of
};

}  // namespace nmt::tools
