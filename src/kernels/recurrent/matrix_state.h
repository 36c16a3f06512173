#pragma once

#include "kernels/handles.h"
#include "kernels/recurrent/unit.h"

#include <cstdint>
#include <span>

namespace nmt::kernels {

/// Largest K, the numbers of a matrix state per channel.
constexpr int max_state_width = 64;
/// Steps between the states that training keeps; the backward pass computes those between again.
constexpr int matrix_stride = 8;

/// A recurrence of a matrix-state unit (units/matrix/matrix_state.h) over T steps. K = state_width;
/// N = heads; W = memory_width(). T: float, or double in a gradient check.
template <class T>
struct BasicMatrixRecurrence {
  const Unit* unit = nullptr;
  std::int64_t steps = 0;  ///< T
  std::int64_t batch = 0;  ///< B
  std::int64_t width = 0;  ///< H
  std::int64_t heads = 1;  ///< N divides H
  int state_width = 0;     ///< K
  bool reverse = false;    ///< from the last step to the first
  const T* x = nullptr;    ///< [T,B,inputs*H] projections of x for the channels
  /// [T,B, shared_width()] projections of x for the heads: for each head planes*K, then scalars.
  const T* shared = nullptr;
  const float* mask = nullptr;  ///< [T,B] or null; 0: the states pass
  const T* vectors = nullptr;   ///< [vectors*H]
  const T* rows = nullptr;      ///< [K,H], of units with trained rows
  const T* h_before = nullptr;  ///< [B,H]
  /// [B,W]: number k of channel c at k*H + c, then what each head remembers.
  const T* memory_before = nullptr;
  T* h = nullptr;       ///< [T,B,H], written
  T* memory = nullptr;  ///< [B,W] after the last step, written
  T* record = nullptr;  ///< matrix_record() numbers, written
  /// [ceil(T/matrix_stride),B,K*H] states before every matrix_stride-th step, in an order of the
  /// backend's own; written; null: inference.
  T* checkpoints = nullptr;

  std::int64_t head_input() const {
    return unit->matrix_state->planes * state_width + unit->matrix_state->scalars;
  }
  std::int64_t shared_width() const { return heads * head_input(); }
  std::int64_t memory_width() const {
    return unit->matrix_state->memory_width(width, heads, state_width);
  }
};

template <class T>
struct BasicMatrixGradient {
  const T* dh = nullptr;        ///< [T,B,H]
  T* dx = nullptr;              ///< [T,B,inputs*H], written
  T* dshared = nullptr;         ///< [T,B, shared_width()], written
  T* dvectors = nullptr;        ///< [vectors*H], added to
  T* drows = nullptr;           ///< [K,H], added to
  T* dh_before = nullptr;       ///< [B,H], written, or null
  T* dmemory_before = nullptr;  ///< [B,W], written, or null
  T* scratch = nullptr;         ///< matrix_scratch() numbers
};

using MatrixRecurrence = BasicMatrixRecurrence<float>;
using MatrixGradient = BasicMatrixGradient<float>;

/// A head of a sentence.
struct MatrixHead {
  std::int64_t sentence, head;
};
/// Some tiles of the channels of a head.
struct MatrixTiles {
  std::int64_t begin, end;
};

/// A matrix-state unit compiled for the instruction set in use: one head of one sentence over all
/// steps, on the calling thread (MatrixScan).
struct MatrixKernels {
  int lanes;  ///< channels of a tile
  void (*prepare)(const MatrixRecurrence&, MatrixHead);
  void (*forward)(const MatrixRecurrence&, MatrixHead, MatrixTiles);
  void (*backward)(const MatrixRecurrence&, const MatrixGradient&, MatrixHead, MatrixTiles,
                   float* sums, float* doutput);
  void (*prepare_backward)(const MatrixRecurrence&, const MatrixGradient&, MatrixHead,
                           float* doutput);
  /// The gates of a head at all steps, each [T,B, gate_width()], of padded steps too. They read no
  /// record and write nothing else. Null: the unit has none.
  void (*gates)(const MatrixRecurrence&, MatrixHead, float* input, float* forget);
  /// Numbers of a gate at a step: those of all heads, or of all channels with their own decays.
  std::int64_t (*gate_width)(const MatrixRecurrence&);
};

/// All matrix-state units of units.def, in order.
std::span<const Unit> matrix_state_units();

/// Floats of MatrixRecurrence::record.
std::int64_t matrix_record(const Cpu&, const MatrixRecurrence&);
std::int64_t matrix_record(const Cuda&, const MatrixRecurrence&);
/// Floats of MatrixGradient::scratch.
std::int64_t matrix_scratch(const Cpu&, const MatrixRecurrence&);
std::int64_t matrix_scratch(const Cuda&, const MatrixRecurrence&);

void matrix_forward(const Cpu&, const MatrixRecurrence&);
void matrix_forward(const Cuda&, const MatrixRecurrence&);
void matrix_backward(const Cpu&, const MatrixRecurrence&, const MatrixGradient&);
void matrix_backward(const Cuda&, const MatrixRecurrence&, const MatrixGradient&);

}  // namespace nmt::kernels
