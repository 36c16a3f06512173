#pragma once

#include "kernels/backend.h"
#include "kernels/recurrent/unit.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace nmt::kernels {

// A unidirectional recurrent layer, including its input projection, computed by cuDNN: lstm, and
// gru with reset: after, without layer normalization or groups. A GPU-only alternative to a linear
// layer followed by recurrence.h.

/// Loads cuDNN with dlopen(). From then on, models on this device use it for the layers it
/// supports. Returns false, with the reason in `why`, when the build lacks cuDNN, the library is
/// missing, or the matmul precision is bfloat16.
bool open_cudnn(const Cuda&, std::string& why);
/// Whether cuDNN is loaded for this device.
bool uses_cudnn(const Cuda&);

/// The recurrent layers of cuDNN.
enum class CudnnCell { none, gru, lstm };
/// The cuDNN layer that computes a unit's equations; none: there is no such layer.
inline CudnnCell cudnn_cell(const Unit& unit) {
  const std::string_view name = unit.name, variant = unit.variant;
  if (name == "lstm") return CudnnCell::lstm;
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
  const float* weights = nullptr;                ///< packed by pack_cudnn()
  /// [T,B,H], written, including the states past the end of a sentence as in recurrence.h.
  float* h = nullptr;
  float* last_cell = nullptr;  ///< [B,H], written: c of lstm after the last step
  float* reserve = nullptr;    ///< cudnn_sizes().reserve floats
  float* scratch = nullptr;    ///< cudnn_sizes().scratch floats
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
CudnnSizes cudnn_sizes(const Cuda&, const CudnnPass& pass);

/// Copies weights into cuDNN's layout.
void pack_cudnn(const Cuda&, const CudnnLayer& layer, const CudnnWeights& weights, float* packed);
void cudnn_forward(const Cuda&, const CudnnPass& pass);
/// `pass` is that of cudnn_forward(), with the reserve it wrote.
void cudnn_backward(const Cuda&, const CudnnPass& pass, const CudnnGradient& gradient);

}  // namespace nmt::kernels
