#include "cuda/kernels/recurrent/persistent/normal.h"
#include "cuda/kernels/recurrent/unit_table.h"

namespace nmt::cuda {
namespace {

template <class U, class Number>
class Forward {
 public:
  __device__ __forceinline__ Forward(const PersistentForward& p, unsigned char* shared)
      : p_(p), a_(p.steps), slice_(p.plan, p.steps.rows) {
    recurrent_ = reinterpret_cast<Number*>(shared);
    late_ = reinterpret_cast<Number*>(shared + p.plan.recurrent.weight_bytes<Number>());
    space_ = shared + p.plan.shared - p.plan.space;
    recurrent_bias_ = reinterpret_cast<float*>(space_ - bias_bytes(p.plan));
    late_bias_ = recurrent_bias_ + p.plan.recurrent.padded_columns;
    load_bias(p.plan.recurrent, a_.u_bias, recurrent_bias_);
    load_bias(p.plan.late, a_.late_bias, late_bias_);
    if constexpr (U::recurrents > 0)
      load_slice(p.plan.recurrent, p.plan, slice_, U::recurrents,
                 static_cast<const Number*>(p.cell.recurrent), recurrent_);
    if constexpr (U::late > 0)
      load_slice(p.plan.late, p.plan, slice_, U::late, static_cast<const Number*>(p.cell.late),
                 late_);
  }

  __device__ __forceinline__ void run() {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(a_.steps); ++i) {
      if constexpr (U::recurrents > 0)
        recurrent_product(i);
      else  // the late value of a channel depends on its own states alone
        each_tile(slice_, [&](std::int64_t first, int rows) {
          each_of_tile(slice_, first, rows, [&](const TileChannel& channel) {
            Inputs in;
            load(channel, i, false, in);
            recurrent_done(channel, i, in, {});
          });
        });
      if constexpr (U::late > 0) {
        wait();
        late_product(i);
      }
      if (i + 1 < a_.steps) prefetch_step(i + 1);
      // Without a recurrent product no block reads the next states of another one. A block may
      // still read the late values, whose memory the next step overwrites where they are not
      // recorded.
      if (i + 1 < a_.steps && (U::recurrents > 0 || p_.cell.record_stride == 0)) wait();
    }
  }

 private:
  using Inputs = StepInputs<U>;

  // The biases of this block's columns, or zeros.
  __device__ __forceinline__ void load_bias(const SliceLayout& l, const float* bias,
                                            float* of_columns) const {
    for (int n = static_cast<int>(threadIdx.x); n < l.columns; n += slice_threads) {
      const int p = n / p_.plan.channels, c = n % p_.plan.channels;
      of_columns[n] = bias && c < slice_.channels ? bias[p * a_.width + slice_.first + c] : 0.0f;
    }
  }

  __device__ __forceinline__ void recurrent_product(std::int64_t i) {
    product<U::recurrents>(p_.plan.recurrent, recurrent_, states_before(i), false, a_.u,
                           recurrent_bias_, a_.u_norm, i, partial(),
                           [&](const TileChannel& channel, Inputs& in, const auto& u) {
                             recurrent_done(channel, i, in, u);
                           });
  }
  __device__ __forceinline__ void late_product(std::int64_t i) {
    product<U::late>(p_.plan.late, late_, late_values(i), true, a_.late, late_bias_, a_.late_norm,
                     i, late_partial(),
                     [&](const TileChannel& channel, Inputs& in, const auto& late) {
                       late_done(channel, i, in, late);
                     });
  }

  // Stores a product with its bias, normalized or not, and calls done(channel, inputs,
  // values).
  template <int planes, class Done>
  __device__ __forceinline__ void product(const SliceLayout& l, const Number* weights,
                                          const SliceInput& input, bool is_late, float* y,
                                          const float* bias, const RowNorm& norm, std::int64_t i,
                                          float* partial, Done done) {
    const auto value = [&](const TileChannel& channel, int p) {
      const int n = p * p_.plan.channels + channel.slice_channel;
      return output(l, space_, channel.row, n) + bias[n];
    };
    each_tile(slice_, [&](std::int64_t first, int rows) {
      constexpr int numbers =
          U::inputs + U::states + U::vectors + position_vectors_of<U> + 1 + (U::late > 0 ? 2 : 0);
      TileItems<Inputs, items_at_once(numbers, 28)> items(slice_, first, rows);
      const auto load_item = [&](const TileChannel& channel, Inputs& in) {
        load(channel, i, is_late, in);
      };
      const auto between = [&] {
        if (!p_.plan.normalizes) items.load(load_item);
      };
      slice_product<max_slice_columns<Number>(U::late > 0, false)>(l, weights, input, first, rows,
                                                                   space_, between);
      if (p_.plan.normalizes) {
        each_of_tile(slice_, first, rows, [&](const TileChannel& channel) {
          float values[planes];
#pragma unroll
          for (int p = 0; p < planes; ++p) values[p] = value(channel, p);
          channel.store<planes>(y, record(i), a_.width, values);
        });
        using Exchange = RowExchange<planes>;
        return Exchange(p_.plan, slice_, partial).put(first, rows, [&](int row, int p) {
          return mean_and_squares(slice_.channels, Exchange::lane(), [&](int c) {
            return value(TileChannel{first, row, slice_.first + c, c}, p);
          });
        });
      }
      items.use(load_item, [&](const TileChannel& channel, Inputs& in) {
        float values[planes];
#pragma unroll
        for (int p = 0; p < planes; ++p) values[p] = value(channel, p);
        channel.store<planes>(y, record(i), a_.width, values);
        done(channel, in, values);
      });
    });
    if (p_.plan.normalizes) normalize<planes>(is_late, y, norm, i, partial, done);
  }

  // Normalizes the product of all tiles.
  template <int planes, class Done>
  __device__ __forceinline__ void normalize(bool is_late, float* y, const RowNorm& norm,
                                            std::int64_t i, float* partial, Done done) {
    wait();
    const RowExchange<planes> exchange(p_.plan, slice_, partial);
    float* const statistics = reinterpret_cast<float*>(space_);
    const auto h = static_cast<float>(a_.width);
    each_tile(slice_, [&](std::int64_t first, int rows) {
      exchange.get(first, rows, statistics, [&](auto slices) { return join_means(h, slices); });
      each_of_tile(slice_, first, rows, [&](const TileChannel& channel) {
        float values[planes], normal[planes];
        channel.load<planes>(y, record(i), a_.width, values);
#pragma unroll
        for (int p = 0; p < planes; ++p) {
          const float mean = statistics[(channel.row * planes + p) * 2],
                      rstd = statistics[(channel.row * planes + p) * 2 + 1];
          normal[p] = (values[p] - mean) * rstd;
          const std::int64_t n = p * a_.width + channel.column;
          values[p] = normal[p] * norm.gain[n] + norm.norm_bias[n];
          if (norm.rstd && exchange.is_first() && channel.slice_channel == 0)
            norm.rstd[channel.channel_at(record(i)).row * planes + p] = rstd;
        }
        if (norm.normal) channel.store<planes>(norm.normal, record(i), a_.width, normal);
        channel.store<planes>(y, record(i), a_.width, values);
        Inputs in;
        load(channel, i, is_late, in);
        done(channel, in, values);
      });
      __syncthreads();  // the statistics have been read
    });
  }

  // h'U is complete: the late value, or the step.
  __device__ __forceinline__ void recurrent_done(const TileChannel& channel, std::int64_t i,
                                                 Inputs& in,
                                                 const float (&u)[at_least_one(U::recurrents)]) {
    Step<float, U>& step = in.step;
#pragma unroll
    for (int p = 0; p < U::recurrents; ++p) step.u[p] = u[p];
    const float factor = p_.cell.dropout ? *read_by_products(p_.cell.dropout, channel, 0) : 1.0f;
    if (U::recurrents > 0 && p_.cell.rearranged)
      *read_by_products(p_.cell.rearranged, channel, record(i)) = step.s[0] * factor;
    if constexpr (U::late > 0) {
      in.convert(a_);
      const float value = U::late_value(step) * factor;
      *read_by_products(p_.cell.late_value, channel, record(i)) = value;
      if (a_.late_value_rounded)
        assign(*read_by_products(a_.late_value_rounded, channel, record(i)), value);
    } else {
      finish(channel, i, in);
    }
  }

  __device__ __forceinline__ void late_done(const TileChannel& channel, std::int64_t i, Inputs& in,
                                            const float (&late)[at_least_one(U::late)]) {
#pragma unroll
    for (int p = 0; p < U::late; ++p) in.step.late[p] = late[p];
    finish(channel, i, in);
  }

  // Loads the inputs of a step without its products; with `with_u` also the recorded recurrent
  // product.
  __device__ __forceinline__ void load(const TileChannel& channel, std::int64_t i, bool with_u,
                                       Inputs& in) const {
    in.load(a_, channel, i);
    if (with_u) channel.load<U::recurrents>(a_.u, record(i), a_.width, in.step.u);
  }
  __device__ __forceinline__ void prefetch_step(std::int64_t i) const {
    each_tile(slice_, [&](std::int64_t first, int rows) {
      each_of_tile(slice_, first, rows,
                   [&](const TileChannel& channel) { Inputs::prefetch(a_, channel, i); });
    });
  }

  __device__ __forceinline__ void finish(const TileChannel& channel, std::int64_t i, Inputs& in) {
    in.convert(a_);
    float state[U::states];
#pragma unroll
    for (int p = 0; p < U::states; ++p) state[p] = in.step.s[p];
    if (in.live()) U::forward(in.step, state);
    const std::int64_t before = i * a_.stride;
    if (a_.next_rounded) assign(*channel.of(a_.next_rounded, before, a_.width), state[0]);
#pragma unroll
    for (int p = 0; p < U::states; ++p) *channel.of(a_.next[p], before, a_.width) = state[p];
  }

  // The input of the recurrent products of step i.
  __device__ __forceinline__ SliceInput states_before(std::int64_t i) const {
    SliceInput in = input();
    if (i == 0) {
      in.values = a_.previous[0];
    } else {
      const std::int64_t from = (i - 1) * a_.stride * a_.width;
      in.values = a_.next[0] + from;
      if (a_.next_rounded && !p_.cell.dropout) in.rounded = a_.next_rounded + from;
    }
    in.factors = p_.cell.dropout;
    in.groups = static_cast<std::int32_t>(a_.late_groups);
    in.aligned = in.aligned && in.groups == 1;
    return in;
  }
  __device__ __forceinline__ SliceInput late_values(std::int64_t i) const {
    SliceInput in = input();
    const std::int64_t from = i * p_.cell.record_stride * a_.width;
    in.values = p_.cell.late_value + from;
    if (a_.late_value_rounded) in.rounded = a_.late_value_rounded + from;
    return in;
  }
  __device__ __forceinline__ SliceInput input() const {
    SliceInput in;
    in.stride = a_.width;
    in.first = slice_.group * p_.plan.group_width;
    in.segment = in.segment_stride = p_.plan.group_width;
    in.aligned = p_.cell.aligned != 0;
    return in;
  }

  // The element of a channel in rows as products read them.
  template <class T>
  __device__ __forceinline__ T* read_by_products(T* rows, const TileChannel& channel,
                                                 std::int64_t before) const {
    return a_.late_groups > 1 ? rows + late_value_offset(a_, channel.channel_at(before))
                              : channel.of(rows, before, a_.width);
  }
  // The rows of the record before step i.
  __device__ __forceinline__ std::int64_t record(std::int64_t i) const {
    return i * p_.cell.record_stride;
  }

  __device__ __forceinline__ void wait() const {
    wait_for_slices(p_.plan, slice_, p_.cell.counters);
  }
  __device__ __forceinline__ float* partial() const {
    return p_.cell.partial;
  }
  __device__ __forceinline__ float* late_partial() const {
    return p_.cell.partial + a_.rows * U::recurrents * p_.plan.set * 2;
  }

  const PersistentForward& p_;
  const UnitSteps& a_;
  const PersistentSlice slice_;
  Number *recurrent_, *late_;
  float *recurrent_bias_, *late_bias_;
  unsigned char* space_;
};

template <class U, class Number>
__global__ void __launch_bounds__(slice_threads, 1)
    persistent_forward_kernel(const PersistentForward p) {
  NMT_DYNAMIC_SHARED(shared, unsigned char);
  Forward<U, Number>(p, shared).run();
}

template <class U, class Number>
constexpr PersistentKernels describe() {
  if constexpr (U::recurrents + U::late > 0)
    return {[](const Cuda& cuda, const PersistentForward& p) {
              launch_together(persistent_forward_kernel<U, Number>,
                              static_cast<unsigned>(p.plan.blocks()), slice_threads,
                              static_cast<std::size_t>(p.plan.shared), cuda, p);
            },
            [](const Cuda& cuda, std::size_t shared) {
              return resident_blocks(persistent_forward_kernel<U, Number>, slice_threads, shared,
                                     cuda);
            }};
  else
    return {nullptr, nullptr};
}

}  // namespace

const PersistentKernels& persistent_kernels(const kernels::Unit& unit, bool bfloat16) {
  using namespace units;
  static constexpr PersistentKernels table[][2] = {
#define NMT_UNIT(name, variant, ...) \
  {describe<__VA_ARGS__, float>(), describe<__VA_ARGS__, Bfloat16>()},
#include "units/units.def"
#undef NMT_UNIT
  };
  return table[number_of(unit)][bfloat16 ? 1 : 0];
}

}  // namespace nmt::cuda
