#pragma once

#include "kernels/handles.h"
#include "kernels/recurrent/unit.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace nmt::kernels {

// A recurrent layer in one direction, input projection included, computed by NVIDIA's cuDNN: lstm
// with input: xh, and gru with reset: after, without layer normalization, groups or dropout of the
// state. It computes what a linear layer
// and recurrence() compute together, on a GPU only.

/// The recurrent layers of cuDNN.
enum class CudnnCell { none, gru, lstm };
/// The cuDNN layer that computes a unit's equations; none: there is no such layer.
inline CudnnCell cudnn_cell(const Unit& unit) {
  const std::string_view name = unit.name, variant = unit.variant;
  if (name == "lstm" && variant == "input=xh") return CudnnCell::lstm;
  return name == "gru" && variant == "reset=after" ? CudnnCell::gru : CudnnCell::none;
}

struct CudnnLayer {
  const Unit* unit = nullptr;
  std::int64_t input = 0;  ///< E
  std::int64_t width = 0;  ///< H
};

/// A layer's weights, or their gradients.
struct CudnnWeights {
  float* input = nullptr;           ///< [E, inputs*H]
  float* input_bias = nullptr;      ///< [inputs*H] or null
  float* recurrent = nullptr;       ///< [H, inputs*H]
  float* recurrent_bias = nullptr;  ///< [inputs*H]
};

struct CudnnPass {
  CudnnLayer layer;
  std::int64_t steps = 0;  ///< T
  std::int64_t batch = 0;  ///< B
  bool reverse = false;    ///< process every sentence from its last token to its first
  bool training = false;   ///< write `reserve` for the backward pass
  const std::int32_t* lengths = nullptr;         ///< [B] on the host, from 1 to T; null: all are T
  const std::int32_t* device_lengths = nullptr;  ///< the same on the device
  const float* x = nullptr;                      ///< [T,B,E]
  const float* initial[max_states]{};            ///< [B,H] each; null: zeros
  const float* weights = nullptr;                ///< packed by Cudnn::pack()
  /// [T,B,H], written, including the states past the end of a sentence as in recurrence.h.
  float* h = nullptr;
  float* last_cell = nullptr;  ///< [B,H], written: c of lstm after the last step
  float* reserve = nullptr;    ///< CudnnSizes::reserve floats
  float* scratch = nullptr;    ///< CudnnSizes::scratch floats
};

struct CudnnGradient {
  float* dh = nullptr;            ///< [T,B,H] gradient of h; overwritten
  float* dx = nullptr;            ///< [T,B,E], written
  float* dinitial[max_states]{};  ///< [B,H] each, written; null where the initial state is zero
  CudnnWeights weights;           ///< added to
};

/// Buffer sizes in floats. `weights`: packed weights.
struct CudnnSizes {
  std::int64_t weights = 0, reserve = 0, scratch = 0;
};

/// cuDNN on the stream of one CUDA device, which outlives this object. A context that carries it
/// has its layers run there (Context::cudnn). For one thread.
class Cudnn {
 public:
  /// Null, and the reason in `why`, where it cannot be used: a build without cuDNN, no library,
  /// products in bfloat16.
  static std::unique_ptr<Cudnn> open(const Cuda& cuda, std::string& why);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  CudnnSizes sizes(const CudnnPass& pass) const;
  /// Packs the weights in cuDNN's layout.
  void pack(const CudnnLayer& layer, const CudnnWeights& weights, float* packed) const;
  void forward(const CudnnPass& pass) const;
  /// The pass is the one that ran forward, with its reserve.
  void backward(const CudnnPass& pass, const CudnnGradient& gradient) const;

  struct State;  // cuda/libraries/cudnn.cpp
  explicit Cudnn(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

}  // namespace nmt::kernels
