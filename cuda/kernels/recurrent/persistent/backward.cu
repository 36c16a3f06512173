#include "cuda/kernels/recurrent/persistent/normal.h"
#include "cuda/kernels/recurrent/unit_table.h"

namespace nmt::cuda {
namespace {

template <class U, class Number>
class Backward {
 public:
  __device__ __forceinline__ Backward(const PersistentBackward& p, unsigned char* shared)
      : p_(p), a_(p.steps), g_(p.gradient), place_(p.plan, p.steps.rows) {
    recurrent_ = reinterpret_cast<Number*>(shared);
    late_ = reinterpret_cast<Number*>(shared + p.plan.recurrent.weight_bytes<Number>());
    space_ = shared + p.plan.shared - p.plan.space;
    if constexpr (U::recurrents > 0)
      load_slice(p.plan.recurrent, p.plan, place_, 1, static_cast<const Number*>(p.cell.recurrent),
                 recurrent_);
    if constexpr (U::late > 0)
      load_slice(p.plan.late, p.plan, place_, 1, static_cast<const Number*>(p.cell.late), late_);
  }

  __device__ __forceinline__ void run() {
    for (std::int64_t i = a_.steps - 1; i >= 0; --i) {
      each_tile(place_, [&](std::int64_t first, int rows) {
        each_of_tile(place_, first, rows, [&](const Channel& at, int, int) { step(at, i); });
      });
      if constexpr (U::late > 0) {
        if (p_.plan.normalizes)
          normalize<U::late>(g_.dlate, a_.late_norm, g_.dlate_rounded, i, late_partial());
        wait();
        each_tile(place_, [&](std::int64_t first, int rows) { late_tile(i, first, rows); });
        if (is_rearranged()) take_late_values(i);
      }
      if constexpr (U::recurrents > 0) {
        if (p_.plan.normalizes)
          normalize<U::recurrents>(g_.du, a_.u_norm, g_.du_rounded, i, p_.cell.partial);
        wait();
        each_tile(place_, [&](std::int64_t first, int rows) { recurrent_tile(i, first, rows); });
        if (is_rearranged() && i > 0) wait();  // other blocks add to the carry of a channel
      }
    }
  }

 private:
  // The gradients of a step without its products; the gates are recomputed.
  __device__ __forceinline__ void step(const Channel& at, std::int64_t i) {
    const std::int64_t h = a_.width, n = at.row * h + at.column, row = at.row + i * a_.stride;
    bool live;
    const Step<float, U> step = load(at, i, live);
    float carry[U::states];
#pragma unroll
    for (int p = 0; p < U::states; ++p) carry[p] = i == a_.steps - 1 ? 0.0f : carried(p, n);
    if (g_.dh) carry[0] += g_.dh[row * h + at.column];
    Step<float, U> d{};
    if (live) {
      U::backward(step, carry, d);
      for (int p = 0; p < U::states; ++p) carry[p] = d.s[p];
    }
#pragma unroll
    for (int p = 0; p < U::states; ++p) g_.carry[p][n] = carry[p];
#pragma unroll
    for (int p = 0; p < U::vectors; ++p)
      g_.vector_sums[at.row * g_.sums_stride + p * h + at.column] += d.v[p];
    store_dx<U>(g_, row, at.column, h, d.x);
    store_planes<U::recurrents>(g_.du, row, at.column, h, d.u);
    store_planes<U::late>(g_.dlate, row, at.column, h, d.late);
    store_planes<position_vectors_of<U>>(g_.dpositions, row, at.column, h, d.position);
    // With normalization products read gradients that are not complete yet.
    if (!p_.plan.normalizes) round_planes<U::late>(g_.dlate, row, at.column, h, g_.dlate_rounded);
    if constexpr (U::late == 0) {
      if (g_.dx) round_planes<U::inputs>(g_.dx, row, at.column, h, g_.dx_rounded);
      if (!p_.plan.normalizes) round_planes<U::recurrents>(g_.du, row, at.column, h, g_.du_rounded);
    }
  }

  // The gradients through the late product.
  __device__ __forceinline__ void late_tile(std::int64_t i, std::int64_t first, int rows) {
    const SliceLayout& l = p_.plan.late;
    slice_product(l, late_, gradients<U::late>(g_.dlate, g_.dlate_rounded, i), first, rows, space_,
                  [] {});
    each_of_tile(place_, first, rows, [&](const Channel& at, int row_in_tile, int c) {
      const std::int64_t n = at.row * a_.width + at.column;
      float dvalue = output(l, space_, row_in_tile, c);
      if (p_.cell.dropout) dvalue *= p_.cell.dropout[n];
      if (is_rearranged())
        p_.cell.dlate_value[n] = dvalue;
      else
        late_value_back(at, i, dvalue);
    });
  }

  // The gradients of the late values of this block's channels, which other blocks have computed.
  __device__ __forceinline__ void take_late_values(std::int64_t i) {
    wait();
    each_tile(place_, [&](std::int64_t first, int rows) {
      each_of_tile(place_, first, rows, [&](const Channel& at, int, int) {
        late_value_back(at, i, __ldcg(p_.cell.dlate_value + late_place(a_, at)));
      });
    });
  }

  // The gradients through a late value. The gradient of a masked row stays zero.
  __device__ __forceinline__ void late_value_back(const Channel& at, std::int64_t i, float dvalue) {
    const std::int64_t h = a_.width, n = at.row * h + at.column, row = at.row + i * a_.stride;
    bool live;
    const Step<float, U> step = load(at, i, live);
    if (live) {
      Step<float, U> d{};
      U::late_backward(step, dvalue, d);
      add_planes<U::inputs>(g_.dx, row, at.column, h, d.x);
      add_planes<U::recurrents>(g_.du, row, at.column, h, d.u);
      for (int p = 0; p < U::states; ++p) g_.carry[p][n] = carried(p, n) + d.s[p];
    }
    round_planes<U::inputs>(g_.dx, row, at.column, h, g_.dx_rounded);
    if (!p_.plan.normalizes) round_planes<U::recurrents>(g_.du, row, at.column, h, g_.du_rounded);
  }

  // Turns the gradients of normalized planes into those of the product (equation: layer_norm.cu).
  template <int planes>
  __device__ __forceinline__ void normalize(float* dy, const RowNorm& norm, Bfloat16* rounded,
                                            std::int64_t i, float* partial) {
    using Exchange = RowExchange<planes>;
    const Exchange exchange(p_.plan, place_, partial);
    const std::int64_t h = a_.width;
    const auto in_planes = [&](std::int64_t row, int p, std::int64_t column) {
      return (row * planes + p) * h + column;
    };
    __syncthreads();  // the gradients of the block's channels are complete
    each_tile(place_, [&](std::int64_t first, int rows) {
      exchange.put(first, rows, [&](int row, int p) {
        TwoSums sums{0, 0};
        for (int c = Exchange::lane(); c < place_.channels; c += warp_size) {
          const std::int64_t column = place_.first + c,
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
    each_tile(place_, [&](std::int64_t first, int rows) {
      exchange.get(first, rows, of_rows, [](auto slices) { return join_sums(slices); });
      each_of_tile(place_, first, rows, [&](const Channel& at, int row_in_tile, int) {
        const std::int64_t row = at.row + i * a_.stride;
#pragma unroll
        for (int p = 0; p < planes; ++p) {
          const std::int64_t n = in_planes(row, p, at.column), of_plane = p * h + at.column,
                             of_sum = at.row * norm.sums_stride + of_plane;
          const float d = dy[n], normal = norm.normal[n],
                      mean = of_rows[(row_in_tile * planes + p) * 2] * inverse,
                      along = of_rows[(row_in_tile * planes + p) * 2 + 1] * inverse;
          norm.gain_sums[of_sum] += d * normal;
          norm.norm_bias_sums[of_sum] += d;
          dy[n] = norm.rstd[row * planes + p] * (d * norm.gain[of_plane] - mean - normal * along);
        }
        round_planes<planes>(dy, row, at.column, h, rounded);
      });
      __syncthreads();  // the sums have been read
    });
  }

  // dh' += du U^T
  __device__ __forceinline__ void recurrent_tile(std::int64_t i, std::int64_t first, int rows) {
    const SliceLayout& l = p_.plan.recurrent;
    slice_product(l, recurrent_, gradients<U::recurrents>(g_.du, g_.du_rounded, i), first, rows,
                  space_, [] {});
    each_of_tile(place_, first, rows, [&](const Channel& at, int row, int c) {
      const std::int64_t n = at.row * a_.width + at.column;
      const float dh = output(l, space_, row, c);
      const std::int64_t to = at.row * a_.width + channel_of(at.column);
      g_.carry[0][to] = carried(0, to) + (p_.cell.dropout ? dh * p_.cell.dropout[n] : dh);
    });
  }

  __device__ __forceinline__ bool is_rearranged() const {
    return a_.late_groups > 1;
  }
  // The channel in a place of the rearranged row.
  __device__ __forceinline__ std::int64_t channel_of(std::int64_t place) const {
    const auto k = static_cast<std::int32_t>(place), groups = p_.plan.groups;
    return is_rearranged() ? k % groups * p_.plan.group_width + k / groups : k;
  }
  // The carry of a channel, to which another block may have added.
  __device__ __forceinline__ float carried(int state, std::int64_t n) const {
    const float* const carry = g_.carry[state] + n;
    return is_rearranged() ? __ldcg(carry) : *carry;
  }

  __device__ __forceinline__ Step<float, U> load(const Channel& at, std::int64_t i,
                                                 bool& live) const {
    Step<float, U> step{};
    load_step<U>(a_, at, i, true, step, live);
    load_planes<U::vectors>(a_.vectors, 0, at.column, a_.width, step.v);
    load_states<U>(a_, at, i, step);
    return step;
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
    in.first = place_.group * p_.plan.group_width;
    in.segment = p_.plan.group_width;
    in.segment_stride = static_cast<std::int32_t>(a_.width);
    in.aligned = p_.cell.aligned != 0;
    return in;
  }

  __device__ __forceinline__ void wait() const {
    wait_for_slices(p_.plan, place_, p_.cell.counters);
  }
  __device__ __forceinline__ float* late_partial() const {
    return p_.cell.partial + a_.rows * U::recurrents * p_.plan.set * 2;
  }

  const PersistentBackward& p_;
  const UnitSteps& a_;
  const UnitStepsGradient& g_;
  const PersistentSlice place_;
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
