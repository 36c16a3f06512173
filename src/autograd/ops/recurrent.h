#pragma once

#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "kernels/recurrent/unit.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace nmt::ops {

// Ops of recurrent layers.

/// The recurrent parameters of a unit; null where the unit or the options have none.
struct Cell {
  std::string name;  ///< name of the layer, for messages
  const kernels::Unit* unit = nullptr;
  std::int64_t width = 0;  ///< H
  /// [H, (recurrents+late)*H], or with groups [K, H/K, (recurrents+late)*H/K].
  Parameter* recurrent = nullptr;
  Parameter* bias = nullptr;       ///< [(recurrents+late)*H]
  Parameter* gain = nullptr;       ///< [(recurrents+late)*H] layer normalization of h'U
  Parameter* norm_bias = nullptr;  ///< [(recurrents+late)*H]
  Parameter* vectors = nullptr;    ///< [vectors*H]
  Parameter* positions = nullptr;  ///< [P, position_vectors*H]
  std::int64_t groups = 1;         ///< K
  bool rearrange = false;          ///< rearrange rows before each product
  Tensor dropout;                  ///< [B,H] kernels::Cell::dropout, or empty
  std::int64_t heads = 1;          ///< N, of a matrix-state unit
  int state_width = 0;             ///< K, likewise
  Parameter* rows = nullptr;       ///< [K,H], of a matrix-state unit with trained rows
};
/// Packs the matrices of a cell for inference.
void freeze(const Context& context, const Cell& cell);

/// The projections of a recurrent layer [T,B,inputs*H]; or a product whose layer normalization a
/// single step applies on a device, overwriting it (kernels::PendingNorm).
struct Projections {
  Projections(Var complete) : value(std::move(complete)) {}
  Projections(Var product, Parameter& norm_gain, Parameter& norm_bias)
      : value(std::move(product)), gain(&norm_gain), bias(&norm_bias) {}
  Var value;
  Parameter *gain = nullptr, *bias = nullptr;
};

/// The states after every step: one Var [T,B,H] per state vector; gradients flow only through the
/// first. x [T,B,inputs*H]: the projections. initial: [B,H] per state vector (all of them, only the
/// unit's initial_states(), or none: Unit::state_start). mask: [T,B] f32 or empty. position: that
/// of step 0 in the sentence.
std::vector<Var> recurrence(Tape& tape, const Cell& cell, const Projections& projections,
                            const std::vector<Var>& initial, const Tensor& mask, bool reverse,
                            std::int64_t position = 0);

/// Result of convolution().
struct Convolved {
  Var y;     ///< [T,B,E]
  Var last;  ///< [1,B,(K-1)*E] the inputs before step T, the last one first; null if reversed
};
/// Depthwise causal convolution over the steps of x [T,B,E] (kernels/recurrent/convolution.h):
/// weight [K,E], bias [E]. before: `last` [B,(K-1)*E] of the steps before x, or null; it gets no
/// gradient. mask: [T,B] f32 or empty.
Convolved convolution(Tape& tape, const Var& x, Parameter& weight, Parameter& bias,
                      const Var& before, const Tensor& mask, bool reverse);

/// recurrence() of a matrix-state unit: h after every step, [T,B,H], and the memory after the last,
/// [1,B,W] (kernels/recurrent/matrix_state.h); gradients flow only through h. x [T,B,inputs*H] and
/// shared [T,B, N*(planes*K + scalars)]: the projections. initial: h and memory, or none for zeros.
std::vector<Var> matrix_recurrence(Tape& tape, const Cell& cell, const Var& x, const Var& shared,
                                   const std::vector<Var>& initial, const Tensor& mask,
                                   bool reverse);

/// Mask and lengths of a padded batch.
struct PaddedSentences {
  PaddedSentences() = default;
  PaddedSentences(Tensor the_mask) : mask(std::move(the_mask)) {}
  Tensor mask;     ///< [T,B] f32, 1 where a sentence has a token; empty: no padding
  Tensor lengths;  ///< i32 [B], on the device; cudnn_layer() and attention read them
  std::vector<std::int32_t> host_lengths;  ///< the same in host memory
};

/// The weights of a recurrent layer for cuDNN, including the input projection.
struct CudnnLayer {
  const kernels::Cudnn* library = nullptr;
  Cell cell;                        ///< when frozen, cell.recurrent->packed holds all weights
  Parameter* input = nullptr;       ///< [E, inputs*H]
  Parameter* input_bias = nullptr;  ///< [inputs*H] or null
};
/// Packs a layer for inference and releases its unpacked matrices.
void freeze(const Context& context, const CudnnLayer& layer);
/// linear() and recurrence() in one, by cuDNN (kernels/recurrent/cudnn.h): x [T,B,E] -> the states
/// after every step, [T,B,H]. Of a second state vector only the last, [1,B,H], without gradient.
/// Not supported by Probe: cuDNN does not expose gates.
std::vector<Var> cudnn_layer(Tape& tape, const CudnnLayer& layer, const Var& x,
                             const std::vector<Var>& initial, const PaddedSentences& sentences,
                             bool reverse);

/// recurrence() with two units per step, the second over a given sequence: s = lower(h', x), h =
/// higher(s, higher_x) (kernels/recurrent/transition.h). x and higher_x [T,B,inputs*H]: the
/// projections.
std::vector<Var> transition(Tape& tape, const Cell& lower, const Cell& higher,
                            const Projections& of_x, const Projections& of_higher_x,
                            const std::vector<Var>& initial, const Tensor& mask, bool reverse,
                            std::int64_t position = 0);

}  // namespace nmt::ops
