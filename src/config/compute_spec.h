#pragma once

#include "config/precision.h"

#include <optional>
#include <string>

namespace nmt {

/// Whether recurring work is launched as CUDA graphs.
enum class GraphUse {
  automatic,  ///< on a GPU
  on,         ///< an error on the CPU
  off
};
/// GEMM implementation of training on the CPU.
enum class ProductChoice {
  automatic,  ///< the fastest: bfloat16x3, or oneDNN, if it is installed, where it is faster than
              ///< own
  own,        ///< own GEMM; no product depends on the number of threads
  onednn,     ///< oneDNN for all products that it can compute, own GEMM for the others
  bfloat16x3  ///< own GEMM, each float32 the sum of three numbers in bfloat16: needs AMX
};
/// Implementation of recurrent layers on a GPU.
enum class RecurrenceChoice {
  automatic,   ///< own kernels: persistent where a table says that they are faster
  own,         ///< own kernels, a launch per product and step of a matrix unit
  persistent,  ///< own kernels, all steps of a matrix unit in one kernel where possible
  cudnn
};

template <>
struct EnumNames<GraphUse> {
  static constexpr std::array<std::string_view, 3> names{"auto", "on", "off"};
};
template <>
struct EnumNames<ProductChoice> {
  static constexpr std::array<std::string_view, 4> names{"auto", "own", "onednn", "bfloat16x3"};
};
template <>
struct EnumNames<RecurrenceChoice> {
  static constexpr std::array<std::string_view, 4> names{"auto", "own", "persistent", "cudnn"};
};

/// Device, threads and precision of a program. Each program has a subset of these options.
struct ComputeSpec {
  std::string device = "cpu";  ///< as parse_device() reads it
  int workers = 0;             ///< batches at a time on the CPU; 0 ("auto"): one per thread
  /// 0: one per processor; per worker if `workers` is given, but for training.
  int cpu_threads = 0;
  /// None ("auto"): that of the model; in training, bfloat16 where it is faster than float32.
  std::optional<Precision> precision;
  /// Of the weights of the model: what "auto" is in inference, but for int8 on a GPU, which is
  /// float32 there. No option.
  std::optional<Precision> stored_precision;
  RecurrenceChoice recurrences = RecurrenceChoice::own;
  GraphUse cuda_graphs = GraphUse::automatic;
  ProductChoice products = ProductChoice::automatic;
  double rank_timeout = 600.0;  ///< seconds to wait for another rank; 0: no limit
};

/// The defaults of nmt-bench.
inline ComputeSpec float32_compute() {
  ComputeSpec spec;
  spec.precision = Precision::float32;
  return spec;
}

}  // namespace nmt
