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
  std::int32_t space = 0;       ///< bytes of shared memory for inputs and sums, at its end
  std::int32_t shared = 0;      ///< all bytes of shared memory

  std::int32_t blocks() const { return groups * slices * batch_slices; }
};
/// Bytes of the biases of a slice, which the forward pass keeps in shared memory before the space.
NMT_HOST_DEVICE std::int32_t bias_bytes(const PersistentPlan& plan) {
  return (plan.recurrent.padded_columns + plan.late.padded_columns) * 4;
}
/// What both passes read, beside UnitSteps of all steps. `recurrent` and `late` are the packed
/// matrices of the pass in the number type of products.
struct PersistentCell {
  const void *recurrent = nullptr, *late = nullptr;
  const float* dropout = nullptr;  ///< [B,H] or null
  /// The states that recurrent products read; recorded with rearranged groups or dropout.
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
  /// Resident blocks of the device with so many bytes of shared memory.
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
/// several steps, and where kernels::why_not_persistent() gives no reason against it.
bool runs_persistently(const Cuda& cuda, const kernels::Recurrence& a, bool backward);

/// All steps of a recurrence, which runs_persistently(): `first` describes step 0.
void persistent_forward(const Cuda& cuda, const kernels::Recurrence& a, UnitSteps first);
/// The same backward, between start_cell() and finish_cell(). dinitial is written; temporary is
/// that of cell_backward().
void persistent_backward(const Cuda& cuda, const kernels::Recurrence& a,
                         const kernels::RecurrenceGradient& g, UnitSteps first,
                         const CellScratch& scratch, float* temporary);

// ---- in kernels ----

/// A sentence of a tile and a channel of a slice.
struct TileIndex {
  std::int32_t row, channel;
};

/// The slice of a block.
struct PersistentSlice {
  std::int32_t group, slice_index, batch_slice;
  std::int32_t first, channels;        ///< channels of the row; the first, and how many
  std::int32_t row, rows;              ///< sentences
  std::int32_t thread_row, step_rows;  ///< of this thread's first element; to its next one

  __device__ __forceinline__ PersistentSlice(const PersistentPlan& plan, std::int64_t batch) {
    const auto block = static_cast<std::int32_t>(blockIdx.x);
    slice_index = block % plan.slices;
    group = block / plan.slices % plan.groups;
    batch_slice = block / plan.slices / plan.groups;
    const std::int32_t in_group = slice_index * plan.channels;
    first = group * plan.group_width + in_group;
    channels =
        plan.group_width - in_group < plan.channels ? plan.group_width - in_group : plan.channels;
    row = batch_slice * plan.batch_rows;
    const auto left = static_cast<std::int32_t>(batch) - row;
    rows = left < plan.batch_rows ? left : plan.batch_rows;
    const auto thread = static_cast<std::int32_t>(threadIdx.x);
    thread_row = thread / channels;
    step_rows = slice_threads / channels;
  }
  __device__ __forceinline__ TileIndex begin() const {
    return {thread_row, static_cast<std::int32_t>(threadIdx.x) - thread_row * channels};
  }
  __device__ __forceinline__ void advance(TileIndex& index) const {
    index.row += step_rows;
    index.channel += slice_threads - step_rows * channels;
    if (index.channel >= channels) {
      index.channel -= channels;
      ++index.row;
    }
  }
};

/// Waits for the blocks of the same slice of the batch, of the group or of all groups.
__device__ __forceinline__ void wait_for_slices(const PersistentPlan& plan,
                                                const PersistentSlice& slice, unsigned* counters) {
  if (plan.set == 1) return __syncthreads();
  const bool spans_groups = plan.set > plan.slices;
  const std::int32_t set =
      spans_groups ? slice.batch_slice : slice.batch_slice * plan.groups + slice.group;
  blocks_barrier(counters + set * counter_stride, static_cast<unsigned>(plan.set),
                 slice.slice_index == 0 && (!spans_groups || slice.group == 0));
}

/// Copies the rows of a slice from a packed matrix to shared memory: row p * channels + c is row
/// (group * planes + p) * group_width + c of the matrix (forward), or, as the planes stand side by
/// side, its row group * group_width + c (backward: planes 1).
template <class Number>
__device__ __forceinline__ void load_slice(const SliceLayout& l, const PersistentPlan& plan,
                                           const PersistentSlice& slice, int planes,
                                           const Number* packed, Number* weights) {
  constexpr int size = Piece<Number>::size, at_once = 8;
  const std::int32_t in_group = slice.slice_index * plan.channels,
                     row_pieces = l.padded_depth / size, pieces = l.padded_columns * row_pieces;
  // The row of column n, or null for padding.
  const auto row = [&](std::int32_t n) -> const Number* {
    const std::int32_t p = n / plan.channels, c = n % plan.channels;
    if (n >= l.columns || c >= slice.channels) return nullptr;
    return packed +
           ((std::int64_t{slice.group} * planes + p) * plan.group_width + in_group + c) * l.depth;
  };
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  if (l.depth % size != 0 || reinterpret_cast<std::uintptr_t>(packed) % 16 != 0) {
#pragma unroll 1
    for (std::int32_t i = thread; i < pieces; i += slice_threads) {
      const std::int32_t n = i / row_pieces, k = i % row_pieces * size;
      const Number* const from = row(n);
      Piece<Number> piece{};
#pragma unroll
      for (int e = 0; e < size; ++e)
        if (from && k + e < l.depth) piece.value[e] = from[k + e];
      store_piece(l, n, k / size, piece, weights);
    }
    return;
  }
  for (std::int32_t begin = thread; begin < pieces; begin += at_once * slice_threads) {
    uint4 loaded[at_once];  // all loads in flight at once
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      const std::int32_t i = begin + j * slice_threads, n = i / row_pieces,
                         k = i % row_pieces * size;
      const Number* const from = k < l.depth ? row(n) : nullptr;
      loaded[j] = from ? *reinterpret_cast<const uint4*>(from + k) : uint4{0, 0, 0, 0};
    }
#pragma unroll
    for (int j = 0; j < at_once; ++j)
      if (const std::int32_t i = begin + j * slice_threads; i < pieces)
        store_piece(l, i / row_pieces, i % row_pieces, std::bit_cast<Piece<Number>>(loaded[j]),
                    weights);
  }
}

/// Prefetches memory into the L2 cache.
template <class T>
__device__ __forceinline__ void prefetch(const T* from) {
#if defined(__CUDACC__)
  asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
#else
  static_cast<void>(from);
#endif
}

/// A sentence and a channel of a tile. Addresses are a part that all channels of a tile share and
/// an offset of 32 bits.
struct TileChannel {
  std::int64_t first;          ///< sentence of the tile
  std::int32_t row;            ///< from `first` on
  std::int32_t column;         ///< channel of the row
  std::int32_t slice_channel;  ///< of the slice

  /// The Channel of the step-by-step kernels, `before` rows later.
  __device__ __forceinline__ Channel channel_at(std::int64_t before) const {
    return {first + row + before, column};
  }
  /// The first of `planes` numbers, each h after the one before, in rows of planes * h.
  template <int planes = 1, class T>
  __device__ __forceinline__ T* of(T* rows, std::int64_t before, std::int64_t h) const {
    return rows + (first + before) * planes * h +
           (row * planes * static_cast<std::int32_t>(h) + column);
  }
  template <int planes, class T, std::size_t n>
  __device__ __forceinline__ void load(const T* rows, std::int64_t before, std::int64_t h,
                                       float (&to)[n]) const {
    const T* const from = of<planes>(rows, before, h);
#pragma unroll
    for (int p = 0; p < planes; ++p) to[p] = as_float(from[p * static_cast<std::int32_t>(h)]);
  }
  template <int planes, class T, std::size_t n>
  __device__ __forceinline__ void store(T* rows, std::int64_t before, std::int64_t h,
                                        const float (&from)[n]) const {
    T* const to = of<planes>(rows, before, h);
#pragma unroll
    for (int p = 0; p < planes; ++p) assign(to[p * static_cast<std::int32_t>(h)], from[p]);
  }
  template <int planes, class T>
  __device__ __forceinline__ void prefetch(const T* rows, std::int64_t before,
                                           std::int64_t h) const {
    const T* const from = of<planes>(rows, before, h);
#pragma unroll
    for (int p = 0; p < planes; ++p) nmt::cuda::prefetch(from + p * static_cast<std::int32_t>(h));
  }
};

/// body(channel) for the sentences and channels of a tile: each always on the same thread.
template <class Body>
__device__ __forceinline__ void each_of_tile(const PersistentSlice& slice, std::int64_t first,
                                             int rows, Body body) {
  for (TileIndex index = slice.begin(); index.row < rows; slice.advance(index))
    body(TileChannel{first, index.row, slice.first + index.channel, index.channel});
}
/// The inputs of a thread's elements of a tile. The loads of n elements are in flight at once, so
/// their latency is paid once.
template <class Item, int n>
class TileItems {
 public:
  __device__ __forceinline__ TileItems(const PersistentSlice& slice, std::int64_t first, int rows)
      : slice_(slice), first_(first), rows_(rows), index_(slice.begin()) {}

  /// load(channel, item) for the first n.
  template <class Load>
  __device__ __forceinline__ void load(Load load) {
    each([&](int j, TileIndex index) { load(channel(index), item_[j]); });
  }
  /// use(channel, item) for all, the first n of which are loaded.
  template <class Load, class Use>
  __device__ __forceinline__ void use(Load load, Use use) {
    for (;;) {
      index_ = each([&](int j, TileIndex index) { use(channel(index), item_[j]); });
      if (index_.row >= rows_) return;
      this->load(load);
    }
  }

 private:
  template <class Body>
  __device__ __forceinline__ TileIndex each(Body body) {
    TileIndex index = index_;
#pragma unroll
    for (int j = 0; j < n; ++j) {
      if (index.row < rows_) body(j, index);
      slice_.advance(index);
    }
    return index;
  }
  __device__ __forceinline__ TileChannel channel(TileIndex index) const {
    return {first_, index.row, slice_.first + index.channel, index.channel};
  }

  const PersistentSlice& slice_;
  const std::int64_t first_;
  const int rows_;
  TileIndex index_;
  Item item_[n];
};
/// The inputs of a step from other layers, and its states, as stored in memory: a conversion would
/// wait for the loads.
template <class U>
struct StepInputs {
  Step<float, U> step{};
  float mask = 1;

  __device__ __forceinline__ static bool is_rounded(const UnitSteps& a) {
    return U::late == 0 && !a.x;
  }
  __device__ __forceinline__ void load(const UnitSteps& a, const TileChannel& channel,
                                       std::int64_t i) {
    const std::int64_t h = a.width, before = i * a.stride;
    if (a.mask) mask = a.mask[channel.first + before + channel.row];
    if (is_rounded(a)) {
      const Bfloat16* const x = channel.of<U::inputs>(a.x_rounded, before, h);
#pragma unroll
      for (int p = 0; p < U::inputs; ++p)
        step.x[p] = std::bit_cast<float>(std::uint32_t{x[p * static_cast<std::int32_t>(h)]});
    } else {
      channel.load<U::inputs>(a.x, before, h, step.x);
    }
    if constexpr (position_vectors_of < U >> 0) {
      const std::int64_t position = a.position + (a.stride < 0 ? -i : i);
      load_planes<position_vectors_of<U>>(
          a.positions, position < a.position_rows ? position : a.position_rows - 1, channel.column,
          h, step.position);
    }
    load_planes<U::vectors>(a.vectors, 0, channel.column, h, step.v);
#pragma unroll
    for (int p = 0; p < U::states; ++p)
      step.s[p] =
          *channel.of(i == 0 ? a.previous[p] : a.next[p], i == 0 ? 0 : before - a.stride, h);
  }
  /// Converts what load() has read.
  __device__ __forceinline__ void convert(const UnitSteps& a) {
    if (!is_rounded(a)) return;
#pragma unroll
    for (int p = 0; p < U::inputs; ++p)
      step.x[p] = as_float(static_cast<Bfloat16>(std::bit_cast<std::uint32_t>(step.x[p])));
  }
  __device__ __forceinline__ bool live() const {
    return mask != 0.0f;
  }

  __device__ __forceinline__ static void prefetch(const UnitSteps& a, const TileChannel& channel,
                                                  std::int64_t i) {
    if (is_rounded(a))
      channel.prefetch<U::inputs>(a.x_rounded, i * a.stride, a.width);
    else
      channel.prefetch<U::inputs>(a.x, i * a.stride, a.width);
  }
};
/// Items in flight at once, where an item has `numbers` values.
constexpr int items_at_once(int numbers, int registers) {
  return std::clamp(registers / numbers, 1, 4);
}

/// body(first sentence, rows) for the tiles of a block's sentences.
template <class Body>
__device__ __forceinline__ void each_tile(const PersistentSlice& slice, Body body) {
  for (std::int32_t begin = 0; begin < slice.rows; begin += tile_rows) {
    const std::int32_t left = slice.rows - begin;
    body(std::int64_t{slice.row} + begin, left < tile_rows ? left : tile_rows);
  }
}

}  // namespace nmt::cuda
