#pragma once

#include "config/compute_spec.h"
#include "config/device.h"
#include "core/threads/thread_pool.h"
#include "kernels/recurrent/cudnn.h"
#include "tensor/context.h"
#include "tensor/cuda_device.h"

#include <memory>
#include <string>

namespace nmt::app {

/// What --precision bfloat16 rounds on the CPU.
enum class ComputeUse {
  inference,  ///< weights of frozen models, and both inputs where fast_bf16_products() exist
  training    ///< both inputs of products in training_context(); validation computes in float32
};

/// The compute resources of a program: its threads, and the GPU that --device selects.
class Compute {
 public:
  /// Errors (usage): no such device, with the reason; int8 or several workers on a GPU; tf32, cuDNN
  /// or CUDA graphs "on" on the CPU; cuDNN in bfloat16 or not installed; oneDNN in bfloat16.
  explicit Compute(const ComputeSpec& spec, ComputeUse use = ComputeUse::inference);

  /// The threads of one worker, or of all of them if shares_threads() and for training.
  ThreadPool& pool() { return pool_; }
  /// That of products: --precision, or what `auto` has chosen.
  Precision precision() const { return precision_; }
  /// Number of batches to translate or score at a time (--workers); 1 on a GPU.
  int workers() const { return workers_; }
  /// Whether the workers are the threads of pool() (--workers auto).
  bool shares_threads() const { return shares_threads_; }
  /// Threads of each worker. For training, --workers divides --cpu-threads in validations.
  int worker_threads() const;
  Cpu cpu() { return {&pool_}; }
  /// The GPU, or null on the CPU.
  CudaDevice* cuda() { return cuda_.get(); }
  /// An arena of the device's memory, for context(). This object must outlive both.
  std::unique_ptr<Arena> new_arena();
  /// An arena for training, whose batches differ in shape. On the CPU the tensors of a step share
  /// chunks of 1 GiB, of which only touched pages use memory. With one chunk per tensor, the free
  /// chunks of one batch would not fit the tensors of the next.
  std::unique_ptr<Arena> new_training_arena();
  /// A context for models of inference and validation.
  Context context(Arena& arena);
  /// A context for training: weights are float32, and on the CPU `products` computes products.
  Context training_context(Arena& arena, const kernels::ProductMethod* products);
  /// Errors (usage): the requested GEMM of training is not available, or onednn or bfloat16x3 was
  /// requested on a GPU. Measures nothing.
  void check_products() const;
  /// Chooses the GEMM of training and logs the choice. With --precision bfloat16:
  /// ProductMethod::bfloat16(). In float32: bfloat16x3() or oneDNN, for the products for which it
  /// is faster here (choose_products(), which may measure) or where it was requested; null for own
  /// tiles in float32 alone, and on a GPU. Errors: as check_products().
  const kernels::ProductMethod* open_products();
  /// GPU memory statistics for the final log line: "GPU memory: 812 MB of tensors at peak, ..."; ""
  /// on the CPU.
  std::string memory_used(const Arena& arena) const;
  /// The first log line of a program: "nmt-translate 0.1.0 on cpu (AMD EPYC 7763), 2 threads,
  /// x86-64-v3 (AVX2), float32", where `auto` had a choice "..., bfloat16 (auto: faster than
  /// float32 here)", with --workers "..., 2 workers of 1 thread, ...", or "nmt-train 0.1.0 on
  /// cuda:0 (NVIDIA H200, compute capability 9.0), 2 threads, ...".
  std::string describe(const std::string& program) const;

 private:
  void use_cpu(const ComputeSpec& spec);
  void use_gpu(const ComputeSpec& spec, const DeviceChoice& choice);

  ThreadPool pool_;
  int workers_;
  bool shares_threads_;
  ProductChoice products_;
  Precision precision_ = Precision::float32;
  std::string precision_reason_;  // why "auto" chose it, for the log
  ComputeUse use_;
  std::unique_ptr<CudaDevice> cuda_;       // null: the CPU
  std::unique_ptr<kernels::Cudnn> cudnn_;  // null: our own recurrent kernels
  std::string why_;                        // why "auto" selected the CPU
};

}  // namespace nmt::app
