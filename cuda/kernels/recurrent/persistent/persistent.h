#pragma once

// Persistent recurrences: all steps of a matrix unit in one kernel. A block keeps the recurrent
// weights of a slice of the channels in shared memory and computes a slice of the batch; blocks of
// other channels read its states from global memory after a barrier of blocks. (Diamos et al.,
// "Persistent RNNs", ICML 2016.)

#include "cuda/kernels/recurrent/cell.h"
#include "cuda/kernels/recurrent/persistent/blocks_barrier.h"
#include "cuda/kernels/recurrent/persistent/slice_product.h"
#include "cuda/kernels/recurrent/unit_step.h"
#include "kernels/recurrent/persistent.h"

#include <type_traits>

namespace nmt::cuda {

/// How a pass is divided among blocks: block ((slice of the batch * groups + group) * slices +
/// slice of the channels). The blocks of a group and of a slice of the batch wait for each other;
/// with normalization or rearranged groups those of all groups.
struct PersistentPlan {
  SliceLayout recurrent, late;   ///< late: no columns without late planes
  std::int32_t groups = 1;       ///< of the cell
  std::int32_t group_width = 0;  ///< channels of a group
  std::int32_t slices = 1;       ///< of the channels of a group
  std::int32_t channels = 0;     ///< of a slice; the last one may have fewer
  std::int32_t batch_slices = 1, batch_rows = 0;
  std::int32_t normalizes = 0;  ///< not 0: layer normalization of the products
  std::int32_t set = 1;         ///< blocks that wait for each other
  std::int32_t space = 0;       ///< bytes of shared memory for staging and output
  std::int32_t shared = 0;      ///< all bytes of shared memory

  std::int32_t blocks() const { return groups * slices * batch_slices; }
};
/// What both passes read, beside UnitSteps of all steps. `recurrent` and `late` are the packed
/// matrices of the pass in the number type of products.
struct PersistentCell {
  const void *recurrent = nullptr, *late = nullptr;
  const float* dropout = nullptr;  ///< [B,H] or null
  /// The states that recurrent products read, recorded where they are rearranged or dropped.
  float* rearranged = nullptr;
  float* dlate_value = nullptr;    ///< [B,H], exchanged by the blocks of rearranged groups
  std::int64_t record_stride = 0;  ///< rows of u, late and the late value between steps
  float* late_value = nullptr;
  /// With normalization: two numbers of [B,R,set] slices of rows, and after them of [B,L,set].
  float* partial = nullptr;
  unsigned* counters = nullptr;
  std::int64_t aligned = 0;  ///< not 0: rows are read in pieces of 16 bytes
};

struct PersistentForward {
  PersistentPlan plan;
  PersistentCell cell;
  UnitSteps steps;
};
struct PersistentBackward {
  PersistentPlan plan;
  PersistentCell cell;
  UnitSteps steps;
  UnitStepsGradient gradient;
};
static_assert(std::has_unique_object_representations_v<PersistentForward> &&
                  std::has_unique_object_representations_v<PersistentBackward>,
              "graphs compare arguments byte by byte");

/// The kernels of a unit for products of float32 or bfloat16. Null without a recurrent product.
struct PersistentKernels {
  void (*forward)(const Cuda&, const PersistentForward&);
  /// Blocks that the device holds at once with so many bytes of shared memory.
  std::int64_t (*forward_blocks)(const Cuda&, std::size_t shared);
};
struct PersistentBackwardKernels {
  void (*backward)(const Cuda&, const PersistentBackward&);
  std::int64_t (*backward_blocks)(const Cuda&, std::size_t shared);
};
const PersistentKernels& persistent_kernels(const kernels::Unit& unit, bool bfloat16);
const PersistentBackwardKernels& persistent_backward_kernels(const kernels::Unit& unit,
                                                             bool bfloat16);

/// Whether a recurrence runs persistently: where CudaDevice::set_persistent() asks for it, with
/// several steps, and where nothing speaks against it (kernels::why_not_persistent()).
bool runs_persistently(const Cuda& cuda, const kernels::Recurrence& a, bool backward);

/// All steps of a recurrence, which runs_persistently(): `first` describes step 0.
void persistent_forward(const Cuda& cuda, const kernels::Recurrence& a, UnitSteps first);
/// The same backward, between start_cell() and finish_cell(). dinitial is written; temporary is
/// that of cell_backward().
void persistent_backward(const Cuda& cuda, const kernels::Recurrence& a,
                         const kernels::RecurrenceGradient& g, UnitSteps first,
                         const CellScratch& scratch, float* temporary);

// ---- in kernels ----

/// The slice of a block.
struct PersistentSlice {
  std::int32_t group, slice, batch_slice;
  std::int32_t first, channels;  ///< channels of the row; the first, and how many
  std::int64_t row, rows;        ///< sentences

  __device__ __forceinline__ PersistentSlice(const PersistentPlan& plan, std::int64_t batch) {
    const auto block = static_cast<std::int32_t>(blockIdx.x);
    slice = block % plan.slices;
    group = block / plan.slices % plan.groups;
    batch_slice = block / plan.slices / plan.groups;
    const std::int32_t in_group = slice * plan.channels;
    first = group * plan.group_width + in_group;
    channels =
        plan.group_width - in_group < plan.channels ? plan.group_width - in_group : plan.channels;
    row = std::int64_t{batch_slice} * plan.batch_rows;
    rows = batch - row < plan.batch_rows ? batch - row : plan.batch_rows;
  }
};

/// Waits for the blocks of the same slice of the batch, of the group or of all groups.
__device__ __forceinline__ void wait_for_slices(const PersistentPlan& plan,
                                                const PersistentSlice& place, unsigned* counters) {
  if (plan.set == 1) return __syncthreads();
  const bool spans_groups = plan.set > plan.slices;
  const std::int32_t set =
      spans_groups ? place.batch_slice : place.batch_slice * plan.groups + place.group;
  blocks_barrier(counters + set * counter_stride, static_cast<unsigned>(plan.set),
                 place.slice == 0 && (!spans_groups || place.group == 0));
}

/// Copies the rows of a slice from a packed matrix to shared memory: row p * channels + c is row
/// (group * planes + p) * group_width + c of the matrix (forward), or, as the planes stand side by
/// side, its row group * group_width + c (backward: planes 1).
template <class Number>
__device__ __forceinline__ void load_slice(const SliceLayout& l, const PersistentPlan& plan,
                                           const PersistentSlice& place, int planes,
                                           const Number* packed, Number* weights) {
  const std::int32_t stride = l.weight_stride<Number>(), in_group = place.slice * plan.channels;
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x);
       i < l.padded_columns * l.padded_depth; i += slice_threads) {
    const std::int32_t n = i / l.padded_depth, k = i % l.padded_depth, p = n / plan.channels,
                       c = n % plan.channels;
    const bool inside = n < l.columns && c < place.channels && k < l.depth;
    const std::int64_t row =
        (std::int64_t{place.group} * planes + p) * plan.group_width + in_group + c;
    weights[n * stride + k] = inside ? packed[row * l.depth + k] : Number{};
  }
}

/// body(sentence, channel of the row, row of the tile, channel of the slice) for the sentences and
/// channels of a tile: each always on the same thread.
template <class Body>
__device__ __forceinline__ void each_of_tile(const PersistentSlice& place, std::int64_t first_row,
                                             int rows, Body body) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * place.channels; i += slice_threads) {
    const int row = i / place.channels, c = i % place.channels;
    body(Channel{first_row + row, place.first + c}, row, c);
  }
}

/// body(first sentence, rows) for the tiles of a block's sentences.
template <class Body>
__device__ __forceinline__ void each_tile(const PersistentSlice& place, Body body) {
  for (std::int64_t begin = 0; begin < place.rows; begin += tile_rows) {
    const std::int64_t left = place.rows - begin;
    body(place.row + begin, static_cast<int>(left < tile_rows ? left : tile_rows));
  }
}

}  // namespace nmt::cuda
