#pragma once

#include "kernels/handles.h"
#include "kernels/products/bfloat16.h"
#include "kernels/products/packed.h"
#include "kernels/recurrent/unit.h"

#include <cstdint>

namespace nmt::kernels {

// Projections and their gradients in bfloat16 instead of float32 [CUDA only]: x_rounded without x,
// and CellGradient::dx_rounded without dx.
//
// Copies of matrices rounded for products (products/product_input.h), here and in the other
// drivers: the kernels that write a matrix write its copy too; null: none. CUDA only, and not for
// products with groups, rearranged rows or dropout.

/// The recurrent weights of one unit. R = unit->recurrents, L = unit->late; in [.. (R+L)*H] the
/// planes of R come first. With groups, the planes of both matrices are block-diagonal and packed
/// as a batch (BlockDiagonal in gemm_batched.h).
struct Cell {
  const Unit* unit = nullptr;
  std::int64_t width = 0;       ///< H
  std::int64_t groups = 1;      ///< K divides H
  bool rearrange = false;       ///< rearrange rows (rearrange.h) before each product
  PackedWeight recurrent;       ///< [H, R*H]
  PackedWeight late;            ///< [H, L*H]
  const float* bias = nullptr;  ///< [(R+L)*H] or null
  /// [(R+L)*H] gain of the layer normalization of each plane of h'U; null: no normalization.
  const float* gain = nullptr;
  const float* norm_bias = nullptr;  ///< [(R+L)*H]
  const float* vectors = nullptr;    ///< [vectors*H]
  /// [P, position_vectors*H]; positions past P use the last row.
  const float* positions = nullptr;
  std::int64_t position_rows = 0;  ///< P
  /// [B,H] factors of what the recurrent and late products read, the same at every step of a
  /// sentence, in the order in which they read the channels; null: all 1.
  const float* dropout = nullptr;
  std::int64_t dropout_rows = 0;                ///< B
  const float* recurrent_transposed = nullptr;  ///< backward: packed [R*H, H]
  const float* late_transposed = nullptr;       ///< backward: packed [L*H, H]
};

/// What the forward pass of a cell records for the backward pass, one row per (step, sentence).
struct CellRecord {
  float* rearranged = nullptr;   ///< [.., H] h' rearranged and with dropout, if there is either
  float* u = nullptr;            ///< [.., R*H]
  float* u_normal = nullptr;     ///< [.., R*H] with layer normalization
  float* u_rstd = nullptr;       ///< [.., R]
  float* late = nullptr;         ///< [.., L*H]
  float* late_normal = nullptr;  ///< [.., L*H]
  float* late_rstd = nullptr;    ///< [.., L]
  float* late_value = nullptr;   ///< [.., H] input of the late product
  Bfloat16* late_value_rounded = nullptr;
};

/// Gradients of a cell over all steps. du and dlate are the gradients of the products before bias
/// and normalization.
struct CellGradient {
  float* dx = nullptr;          ///< [T,B,inputs*H], written
  float* du = nullptr;          ///< [T,B,R*H], written
  float* dlate = nullptr;       ///< [T,B,L*H], written
  float* dvectors = nullptr;    ///< [vectors*H], added to
  float* dpositions = nullptr;  ///< [P, position_vectors*H], added to
  float* dgain = nullptr;       ///< [(R+L)*H], added to
  float* dnorm_bias = nullptr;  ///< [(R+L)*H], added to
  Bfloat16 *dx_rounded = nullptr, *du_rounded = nullptr, *dlate_rounded = nullptr;
};

/// The layer normalization of projections, per plane, where a loop of a single step applies it
/// itself; product null: off. CUDA only.
struct PendingNorm {
  float* product = nullptr;     ///< [B,inputs*H] the projections before it, overwritten by them
  const float* gain = nullptr;  ///< [inputs*H]
  const float* bias = nullptr;  ///< [inputs*H]
};

/// A recurrence over T steps: a fused scan for element-wise units, alternating matmul and pointwise
/// step for matrix units, or on a device one kernel for all steps (persistent.h). On the CPU each
/// thread runs its share of the sentences, or of the channels, through all steps without a barrier.
struct Recurrence {
  Cell cell;
  std::int64_t steps = 0;       ///< T
  std::int64_t batch = 0;       ///< B
  bool reverse = false;         ///< from the last step to the first
  std::int64_t position = 0;    ///< of step 0 in the sentence
  bool keep = true;             ///< record holds all steps (training) or only one (inference)
  const float* x = nullptr;     ///< [T,B,inputs*H] projections, bias and normalization included
  const float* mask = nullptr;  ///< [T,B] or null
  const float* initial[max_states]{};   ///< [B,H]
  float* states[max_states]{};          ///< [T,B,H], written
  Bfloat16* states_rounded = nullptr;   ///< of states[0]
  const Bfloat16* x_rounded = nullptr;  ///< instead of x, for a unit without late planes
  PendingNorm x_norm;                   ///< of x, with T = 1
  CellRecord record;
};

struct RecurrenceGradient {
  const float* dh = nullptr;      ///< [T,B,H] gradient of states[0]
  float* dinitial[max_states]{};  ///< [B,H], written
  CellGradient cell;
  float* scratch = nullptr;  ///< recurrence_scratch() floats
};

void recurrence_forward(const Cpu&, const Recurrence&);
void recurrence_forward(const Cuda&, const Recurrence&);
void recurrence_backward(const Cpu&, const Recurrence&, const RecurrenceGradient&);
void recurrence_backward(const Cuda&, const Recurrence&, const RecurrenceGradient&);
std::int64_t recurrence_scratch(const Cpu&, const Recurrence&);
std::int64_t recurrence_scratch(const Cuda&, const Recurrence&);

}  // namespace nmt::kernels
