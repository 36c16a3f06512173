#include "cuda/kernels/recurrent/persistent/normal.h"
#include "cuda/kernels/recurrent/unit_table.h"

namespace nmt::cuda {
namespace {

template <class U, class Number>
class Backward {
 public:
  __device__ __forceinline__ Backward(const PersistentBackward& p, unsigned char* shared)
      : p_(p), a_(p.steps), g_(p.gradient), slice_(p.plan, p.steps.rows) {
    recurrent_ = reinterpret_cast<Number*>(shared);
    late_ = reinterpret_cast<Number*>(shared + p.plan.recurrent.weight_bytes<Number>());
    space_ = shared + p.plan.shared - p.plan.space;
    if constexpr (U::recurrents > 0)
      load_slice(p.plan.recurrent, p.plan, slice_, 1, static_cast<const Number*>(p.cell.recurrent),
                 recurrent_);
    if constexpr (U::late > 0)
      load_slice(p.plan.late, p.plan, slice_, 1, static_cast<const Number*>(p.cell.late), late_);
  }

  __device__ __forceinline__ void run() {
    const std::int64_t last = a_.steps - 1;
    each_tile(slice_, [&](std::int64_t first, int rows) { steps_of_tile(last, first, rows); });
    for (std::int64_t i = last; i >= 0; --i) {
      if constexpr (U::late > 0) {
        if (p_.plan.normalizes)
          normalize<U::late>(g_.dlate, a_.late_norm, g_.dlate_rounded, i, late_partial());
        wait();
        each_tile(slice_, [&](std::int64_t first, int rows) { late_tile(i, first, rows); });
        if (is_rearranged()) take_late_values(i);
      }
      if constexpr (U::recurrents > 0) {
        if (p_.plan.normalizes)
          normalize<U::recurrents>(g_.du, a_.u_norm, g_.du_rounded, i, p_.cell.partial);
        if (i > 1) prefetch_step(i - 2);  // step i - 1 follows the product of step i at once
        wait();
        each_tile(slice_, [&](std::int64_t first, int rows) { recurrent_tile(i, first, rows); });
        if (i == 0 || !is_rearranged()) continue;
        wait();  // other blocks add to the carry of a channel
      }
      if (i > 0)
        each_tile(slice_, [&](std::int64_t first, int rows) { steps_of_tile(i - 1, first, rows); });
    }
  }

 private:
  // The inputs of a step and of the gradients through its late value.
  struct Inputs : StepInputs<U> {
    Step<float, U> d{};  // the gradients so far
    float carry[U::states]{}, dh = 0, vector_sums[at_least_one(U::vectors)]{};
  };
  // Their number of values in registers; most gradients start as zeros.
  __device__ __forceinline__ static constexpr int numbers() {
    return U::inputs + U::recurrents + 2 * U::states + 2 * U::vectors + position_vectors_of<U> + 2;
  }
  __device__ __forceinline__ static constexpr int late_numbers() {
    return 2 * (U::inputs + U::recurrents + U::states) + U::late + 1;
  }

  __device__ __forceinline__ void steps_of_tile(std::int64_t i, std::int64_t first, int rows) {
    TileItems<Inputs, items_at_once(numbers(), 40)> items(slice_, first, rows);
    const auto load_step = [&](const TileChannel& channel, Inputs& in) {
      load_for_step(channel, i, in);
    };
    items.load(load_step);
    items.use(load_step, [&](const TileChannel& channel, Inputs& in) { step(channel, i, in); });
  }

  __device__ __forceinline__ void load_for_step(const TileChannel& channel, std::int64_t i,
                                                Inputs& in) const {
    in = {};
    load(channel, i, in);
#pragma unroll
    for (int p = 0; p < U::states; ++p)
      in.carry[p] = i == a_.steps - 1 ? 0.0f : carried(p, channel);
    if (g_.dh) in.dh = *channel.of(g_.dh, i * a_.stride, a_.width);
#pragma unroll
    for (int p = 0; p < U::vectors; ++p) in.vector_sums[p] = vector_sum(channel, p);
  }
  __device__ __forceinline__ float& vector_sum(const TileChannel& channel, int p) const {
    return g_.vector_sums[(channel.first + channel.row) * g_.sums_stride + p * a_.width +
                          channel.column];
  }

  // The gradients of a step without its products; the gates are recomputed.
  __device__ __forceinline__ void step(const TileChannel& channel, std::int64_t i, Inputs& in) {
    const std::int64_t h = a_.width, before = i * a_.stride;
    in.convert(a_);
    float(&carry)[U::states] = in.carry;
    carry[0] += in.dh;
    Step<float, U> d{};
    if (in.live()) {
      U::backward(in.step, carry, d);
      for (int p = 0; p < U::states; ++p) carry[p] = d.s[p];
    }
    // The outputs that other blocks wait for come first. With normalization, the gradients that
    // products read are not complete yet.
    if (!p_.plan.normalizes && g_.dlate_rounded)
      channel.store<U::late>(g_.dlate_rounded, before, h, d.late);
    if (U::late == 0 && !p_.plan.normalizes && g_.du_rounded)
      channel.store<U::recurrents>(g_.du_rounded, before, h, d.u);
    channel.store<U::recurrents>(g_.du, before, h, d.u);
    channel.store<U::late>(g_.dlate, before, h, d.late);
#pragma unroll
    for (int p = 0; p < U::states; ++p) *channel.of(g_.carry[p], 0, h) = carry[p];
#pragma unroll
    for (int p = 0; p < U::vectors; ++p) vector_sum(channel, p) = in.vector_sums[p] + d.v[p];
    if (U::late > 0 || g_.dx) channel.store<U::inputs>(g_.dx, before, h, d.x);
    if (U::late == 0 && g_.dx_rounded) channel.store<U::inputs>(g_.dx_rounded, before, h, d.x);
    channel.store<position_vectors_of<U>>(g_.dpositions, before, h, d.position);
  }

  // The gradients through the late product.
  __device__ __forceinline__ void late_tile(std::int64_t i, std::int64_t first, int rows) {
    const SliceLayout& l = p_.plan.late;
    TileItems<Inputs, items_at_once(late_numbers(), 40)> items(slice_, first, rows);
    const auto load_late = [&](const TileChannel& channel, Inputs& in) {
      load_for_late(channel, i, in);
    };
    slice_product<max_slice_columns<Number>(U::late > 0, true)>(
        l, late_, gradients<U::late>(g_.dlate, g_.dlate_rounded, i), first, rows, space_, [&] {
          if (!is_rearranged()) items.load(load_late);
        });
    if (is_rearranged())
      each_of_tile(slice_, first, rows, [&](const TileChannel& channel) {
        *channel.of(p_.cell.dlate_value, 0, a_.width) = dropped(l, channel);
      });
    else
      items.use(load_late, [&](const TileChannel& channel, Inputs& in) {
        late_value_back(channel, i, dropped(l, channel), in);
      });
  }
  // An output of the last product, times the dropout factor of the input of the forward product.
  __device__ __forceinline__ float dropped(const SliceLayout& l, const TileChannel& channel) const {
    const float sum = output(l, space_, channel.row, channel.slice_channel);
    return p_.cell.dropout ? sum * *channel.of(p_.cell.dropout, 0, a_.width) : sum;
  }

  // The gradients of the late values of this block's channels, which other blocks have computed.
  __device__ __forceinline__ void take_late_values(std::int64_t i) {
    wait();
    each_tile(slice_, [&](std::int64_t first, int rows) {
      each_of_tile(slice_, first, rows, [&](const TileChannel& channel) {
        Inputs in;
        load_for_late(channel, i, in);
        late_value_back(channel, i,
                        __ldcg(p_.cell.dlate_value + late_value_offset(a_, channel.channel_at(0))),
                        in);
      });
    });
  }

  __device__ __forceinline__ void load_for_late(const TileChannel& channel, std::int64_t i,
                                                Inputs& in) const {
    const std::int64_t h = a_.width, before = i * a_.stride;
    in = {};
    load(channel, i, in);
    channel.load<U::inputs>(g_.dx, before, h, in.d.x);
    channel.load<U::recurrents>(g_.du, before, h, in.d.u);
#pragma unroll
    for (int p = 0; p < U::states; ++p) in.carry[p] = carried(p, channel);
  }

  // The gradients through a late value. The gradient of a masked row stays zero.
  __device__ __forceinline__ void late_value_back(const TileChannel& channel, std::int64_t i,
                                                  float dvalue, Inputs& in) {
    const std::int64_t h = a_.width, before = i * a_.stride;
    in.convert(a_);
    Step<float, U>& d = in.d;
    if (in.live()) U::late_backward(in.step, dvalue, d);
    if (!p_.plan.normalizes && g_.du_rounded)
      channel.store<U::recurrents>(g_.du_rounded, before, h, d.u);
    if (in.live()) {
      channel.store<U::recurrents>(g_.du, before, h, d.u);
      channel.store<U::inputs>(g_.dx, before, h, d.x);
      for (int p = 0; p < U::states; ++p) *channel.of(g_.carry[p], 0, h) = in.carry[p] + d.s[p];
    }
    if (g_.dx_rounded) channel.store<U::inputs>(g_.dx_rounded, before, h, d.x);
  }

  // Turns the gradients of normalized planes into those of the product (equation: norm_rows.h).
  template <int planes>
  __device__ __forceinline__ void normalize(float* dy, const RowNorm& norm, Bfloat16* rounded,
                                            std::int64_t i, float* partial) {
    using Exchange = RowExchange<planes>;
    const Exchange exchange(p_.plan, slice_, partial);
    const std::int64_t h = a_.width;
    const auto in_planes = [&](std::int64_t row, int p, std::int64_t column) {
      return (row * planes + p) * h + column;
    };
    __syncthreads();  // the gradients of the block's channels are complete
    each_tile(slice_, [&](std::int64_t first, int rows) {
      exchange.put(first, rows, [&](int row, int p) {
        TwoSums sums{0, 0};
        for (int c = Exchange::lane(); c < slice_.channels; c += warp_size) {
          const std::int64_t column = slice_.first + c,
                             n = in_planes(first + row + i * a_.stride, p, column);
          const float g = dy[n] * norm.gain[p * h + column];
          sums.first += g;
          sums.second += g * norm.normal[n];
        }
        return TwoSums{warp_sum(sums.first), warp_sum(sums.second)};
      });
    });
    wait();
    float* const of_rows = reinterpret_cast<float*>(space_);
    const float inverse = 1.0f / static_cast<float>(h);
    each_tile(slice_, [&](std::int64_t first, int rows) {
      exchange.get(first, rows, of_rows, [](auto slices) { return join_sums(slices); });
      each_of_tile(slice_, first, rows, [&](const TileChannel& channel) {
        const std::int64_t row = channel.channel_at(i * a_.stride).row;
#pragma unroll
        for (int p = 0; p < planes; ++p) {
          const std::int64_t n = in_planes(row, p, channel.column),
                             of_plane = p * h + channel.column,
                             of_sum = (first + channel.row) * norm.sums_stride + of_plane;
          const float d = dy[n], normal = norm.normal[n],
                      mean = of_rows[(channel.row * planes + p) * 2] * inverse,
                      along = of_rows[(channel.row * planes + p) * 2 + 1] * inverse;
          norm.gain_sums[of_sum] += d * normal;
          norm.norm_bias_sums[of_sum] += d;
          dy[n] = norm.rstd[row * planes + p] * (d * norm.gain[of_plane] - mean - normal * along);
        }
        round_planes<planes>(dy, row, channel.column, h, rounded);
      });
      __syncthreads();  // the sums have been read
    });
  }

  // dh' += du U^T, and the step before.
  __device__ __forceinline__ void recurrent_tile(std::int64_t i, std::int64_t first, int rows) {
    const SliceLayout& l = p_.plan.recurrent;
    const bool with_step = i > 0 && !is_rearranged();
    TileItems<Inputs, items_at_once(numbers(), 40)> items(slice_, first, rows);
    const auto load_step = [&](const TileChannel& channel, Inputs& in) {
      load_for_step(channel, i - 1, in);
    };
    slice_product<max_slice_columns<Number>(U::late > 0, true)>(
        l, recurrent_, gradients<U::recurrents>(g_.du, g_.du_rounded, i), first, rows, space_, [&] {
          if (with_step) items.load(load_step);
        });
    if (with_step)
      return items.use(load_step, [&](const TileChannel& channel, Inputs& in) {
        in.carry[0] += dropped(l, channel);
        step(channel, i - 1, in);
      });
    each_of_tile(slice_, first, rows, [&](const TileChannel& channel) {
      TileChannel to = channel;
      to.column = channel_of(channel.column);
      *to.of(g_.carry[0], 0, a_.width) = carried(0, to) + dropped(l, channel);
    });
  }

  __device__ __forceinline__ bool is_rearranged() const {
    return a_.late_groups > 1;
  }
  // The channel at an index of the rearranged row.
  __device__ __forceinline__ std::int32_t channel_of(std::int32_t index) const {
    const std::int32_t groups = p_.plan.groups;
    return is_rearranged() ? index % groups * p_.plan.group_width + index / groups : index;
  }
  // The carry of a channel, to which another block may have added.
  __device__ __forceinline__ float carried(int state, const TileChannel& channel) const {
    const float* const carry = channel.of(g_.carry[state], 0, a_.width);
    return is_rearranged() ? __ldcg(carry) : *carry;
  }

  __device__ __forceinline__ void load(const TileChannel& channel, std::int64_t i,
                                       Inputs& in) const {
    in.load(a_, channel, i);
    channel.load<U::recurrents>(a_.u, i * a_.stride, a_.width, in.step.u);
    channel.load<U::late>(a_.late, i * a_.stride, a_.width, in.step.late);
  }
  __device__ __forceinline__ void prefetch_step(std::int64_t i) const {
    const std::int64_t h = a_.width, before = i * a_.stride;
    each_tile(slice_, [&](std::int64_t first, int rows) {
      each_of_tile(slice_, first, rows, [&](const TileChannel& channel) {
        Inputs::prefetch(a_, channel, i);
        channel.prefetch<U::recurrents>(a_.u, before, h);
        channel.prefetch<U::late>(a_.late, before, h);
        if (g_.dh) channel.prefetch<1>(g_.dh, before, h);
        if (i > 0)
#pragma unroll
          for (int p = 0; p < U::states; ++p)
            channel.prefetch<1>(a_.next[p], before - a_.stride, h);
      });
    });
  }

  // The group's columns of the gradients of `planes` planes at step i.
  template <int planes>
  __device__ __forceinline__ SliceInput gradients(const float* values, const Bfloat16* rounded,
                                                  std::int64_t i) const {
    SliceInput in;
    in.stride = planes * a_.width;
    const std::int64_t from = i * a_.stride * in.stride;
    in.values = values + from;
    if (rounded) in.rounded = rounded + from;
    in.first = slice_.group * p_.plan.group_width;
    in.segment = p_.plan.group_width;
    in.segment_stride = static_cast<std::int32_t>(a_.width);
    in.aligned = p_.cell.aligned != 0;
    return in;
  }

  __device__ __forceinline__ void wait() const {
    wait_for_slices(p_.plan, slice_, p_.cell.counters);
  }
  __device__ __forceinline__ float* late_partial() const {
    return p_.cell.partial + a_.rows * U::recurrents * p_.plan.set * 2;
  }

  const PersistentBackward& p_;
  const UnitSteps& a_;
  const UnitStepsGradient& g_;
  const PersistentSlice slice_;
  Number *recurrent_, *late_;
  unsigned char* space_;
};

template <class U, class Number>
__global__ void __launch_bounds__(slice_threads, 1)
    persistent_backward_kernel(const PersistentBackward p) {
  NMT_DYNAMIC_SHARED(shared, unsigned char);
  Backward<U, Number>(p, shared).run();
}

template <class U, class Number>
constexpr PersistentBackwardKernels describe() {
  if constexpr (U::recurrents + U::late > 0)
    return {[](const Cuda& cuda, const PersistentBackward& p) {
              launch_together(persistent_backward_kernel<U, Number>,
                              static_cast<unsigned>(p.plan.blocks()), slice_threads,
                              static_cast<std::size_t>(p.plan.shared), cuda, p);
            },
            [](const Cuda& cuda, std::size_t shared) {
              return resident_blocks(persistent_backward_kernel<U, Number>, slice_threads, shared,
                                     cuda);
            }};
  else
    return {nullptr, nullptr};
}

}  // namespace

const PersistentBackwardKernels& persistent_backward_kernels(const kernels::Unit& unit,
                                                             bool bfloat16) {
  using namespace units;
  static constexpr PersistentBackwardKernels table[][2] = {
#define NMT_UNIT(name, variant, ...) \
  {describe<__VA_ARGS__, float>(), describe<__VA_ARGS__, Bfloat16>()},
#include "units/units.def"
#undef NMT_UNIT
  };
  return table[number_of(unit)][bfloat16 ? 1 : 0];
}

}  // namespace nmt::cuda
