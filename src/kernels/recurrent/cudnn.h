#pragma once

#include "kernels/backend.h"
#include "kernels/recurrent/unit.h"

#include <cstdint>
#include <string>

namespace nmt::kernels {

// A recurrent layer in one direction, input projection and all, as NVIDIA's cuDNN runs it: lstm,
// and gru with reset: after, without layer normalization or groups. Another way to what a linear
// layer and recurrence.h compute, on a GPU alone.

/// Opens cuDNN, by name; from then on layers of the models made on this device run there where it
/// knows them. False, and the reason in `why`: a build without it, no library, products in
/// bfloat16.
bool open_cudnn(const Cuda&, std::string& why);
/// Whether it was opened for this device.
bool uses_cudnn(const Cuda&);

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
  std::int64_t steps = 0;                 ///< T
  std::int64_t batch = 0;                 ///< B
  bool reverse = false;                   ///< every sentence from its last symbol to its first
  bool training = false;                  ///< the reserve is written, for the backward pass
  const std::int32_t* lengths = nullptr;  ///< [B] on the host, from 1 to T; null: all are T
  const std::int32_t* device_lengths = nullptr;  ///< the same on the device
  const float* x = nullptr;                      ///< [T,B,E]
  const float* initial[max_states]{};            ///< [B,H] each; null: zeros
  const float* weights = nullptr;                ///< as pack_cudnn() left them
  /// [T,B,H], written: as recurrence.h has it, states behind a sentence's end too.
  float* h = nullptr;
  float* last_cell = nullptr;  ///< [B,H], written: lstm's c after the last step
  float* reserve = nullptr;    ///< cudnn_sizes().reserve floats
  float* scratch = nullptr;    ///< cudnn_sizes().scratch floats
};

struct CudnnGradient {
  float* dh = nullptr;            ///< [T,B,H] gradient of h; overwritten
  float* dx = nullptr;            ///< [T,B,E], written
  float* dinitial[max_states]{};  ///< [B,H] each, written; null where the pass has zeros
  CudnnWeights weights;           ///< added to
};

/// In floats. `weights`: of packed ones.
struct CudnnSizes {
  std::int64_t weights = 0, reserve = 0, scratch = 0;
};
CudnnSizes cudnn_sizes(const Cuda&, const CudnnPass& pass);

/// Puts weights to where cuDNN looks for them.
void pack_cudnn(const Cuda&, const CudnnLayer& layer, const CudnnWeights& weights, float* packed);
void cudnn_forward(const Cuda&, const CudnnPass& pass);
/// The pass is the one that ran forward, with its reserve.
void cudnn_backward(const Cuda&, const CudnnPass& pass, const CudnnGradient& gradient);

}  // namespace nmt::kernels
