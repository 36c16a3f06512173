#pragma once

// The scan of a matrix-state unit (units/matrix/matrix_state.h) over time for one head of one
// sentence. Channels are processed in tiles, whose states stay in the first-level cache. Every
// sentence is computed by itself, so the bits of its outputs depend neither on the batch nor on the
// number of threads. Where threads share the tiles of a head, the gradients of its projections are
// sums in another order. T: float, or double in a gradient check.

#include "kernels/recurrent/matrix_state.h"
#include "kernels/recurrent/prefetch.h"
#include "units/matrix/matrix_state.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace nmt::kernels {

/// Units whose heads have gates, and those whose channels have.
template <class U>
concept HeadGates = U::rows == 0 && requires(const units::HeadInput<const float>& in,
                                             const units::HeadOutput<float>& out, float* gate) {
  U::gates(1, in, out, gate, gate);
};
template <class U>
concept ChannelGates = (U::rows > 0) &&
                       requires(const units::ChannelStep<float, U>& step, float g) {
  U::gates(step, g, g, g);
};

template <class T, class U>
class MatrixScan {
 public:
  using Loop = BasicMatrixRecurrence<T>;
  using Gradient = BasicMatrixGradient<T>;
  using Channel = units::ChannelStep<T, U>;

  MatrixScan(const Loop& loop, std::int64_t sentence, std::int64_t head)
      : a_(loop),
        k_(loop.state_width),
        b_(sentence),
        head_(head),
        part_(loop.width / loop.heads),
        output_(units::head_output<U>(k_)),
        memory_(units::head_memory<U>(k_)) {
    record_ = a_.record + (b_ * a_.heads + head_) * a_.steps * output_;
  }

  void forward() {
    prepare();
    forward_tiles(0, tiles());
  }

  /// Tiles of the head: threads may share them between prepare() and, in the backward pass,
  /// prepare_backward().
  std::int64_t tiles() const { return (part_ + lanes - 1) / lanes; }

  // Not inlined: GCC 12 would peel elements off the loops over a tile to align an object whose
  // place on the stack it chooses itself, which takes mamba three times as long.
  [[gnu::noinline]] void forward_tiles(std::int64_t begin, std::int64_t end) {
    for (std::int64_t tile = begin; tile < end; ++tile) {
      open_tile(tile * lanes);
      T* state = states_;
      load_state(state);
      T h[lanes];
      load(a_.h_before + b_ * a_.width + channel_, h);
      for (std::int64_t i = 0; i < a_.steps; ++i) {
        const std::int64_t t = time(i), row = t * a_.batch + b_;
        if (i + ahead < a_.steps) {
          const std::int64_t later = time(i + ahead) * a_.batch + b_;
          prefetch_inputs(later);
          prefetch_output(a_.h + later * a_.width + channel_, count_);
        }
        if (a_.checkpoints && i % stride == 0) save_state(state, checkpoint(i / stride));
        if (is_live(row)) {
          T p[lanes], w[lanes], y[lanes];
          open_step(t);
          step(state, state, p, w, y, decays_);
#pragma omp simd
          for (int j = 0; j < lanes; ++j) {
            Channel c;
            read_channel(j, c);
            h[j] = U::output(c, y[j]);
          }
        }
        store(h, a_.h + row * a_.width + channel_);
      }
      store_state(state, a_.memory + b_ * a_.memory_width());
    }
  }

  /// sums: [vectors*H], then [rows*K*H], added to. scratch: steps * head_output() numbers.
  void backward(const Gradient& g, T* sums, T* scratch) {
    backward_tiles(g, 0, tiles(), sums, scratch);
    prepare_backward(g, scratch);
  }

  /// doutput: written, the gradient of what prepare() computes, [steps, head_output()].
  void backward_tiles(const Gradient& g, std::int64_t begin, std::int64_t end, T* sums,
                      T* doutput) {
    doutput_ = doutput;
    std::fill_n(doutput, a_.steps * output_, T(0));
    for (std::int64_t tile = begin; tile < end; ++tile) {
      open_tile(tile * lanes);
      backward_tile(g, sums);
    }
  }

  /// The head's vectors of all steps.
  void prepare() {
    const T* before = memory_before();
    for (std::int64_t i = 0; i < a_.steps; ++i) {
      const std::int64_t t = time(i), row = t * a_.batch + b_;
      const units::HeadOutput<T> out = units::head_at<U>(record_ + t * output_, k_);
      if (i + ahead < a_.steps)
        prefetch(input(time(i + ahead) * a_.batch + b_, before).planes, a_.head_input());
      if (is_live(row))
        U::prepare(k_, input(row, before), out);
      else
        std::copy_n(before, memory_, out.memory);
      before = out.memory;
    }
    std::copy_n(before, memory_,
                a_.memory + b_ * a_.memory_width() + k_ * a_.width + head_ * memory_);
  }

  /// doutput: the sum over all tiles.
  void prepare_backward(const Gradient& g, T* doutput) {
    doutput_ = doutput;
    constexpr int most = units::at_least_one(units::head_memory<U>(max_state_width));
    T dmemory[most] = {}, dbefore[most];
    for (std::int64_t i = a_.steps - 1; i >= 0; --i) {
      const std::int64_t t = time(i), row = t * a_.batch + b_;
      T* to = g.dshared + row * a_.shared_width() + head_ * a_.head_input();
      if (i >= ahead) {
        const std::int64_t later = time(i - ahead) * a_.batch + b_;
        prefetch(input(later, nullptr).planes, a_.head_input());
        prefetch_output(g.dshared + later * a_.shared_width() + head_ * a_.head_input(),
                        a_.head_input());
      }
      if (!is_live(row)) {
        std::fill_n(to, a_.head_input(), T(0));
        continue;
      }
      const T* before =
          i == 0 ? memory_before() : units::head_at<U>(record_ + time(i - 1) * output_, k_).memory;
      const units::HeadOutput<T> dout = units::head_at<U>(doutput_ + t * output_, k_);
      std::copy_n(dmemory, memory_, dout.memory);
      U::prepare_backward(k_, input(row, before),
                          units::head_at<U, const T>(record_ + t * output_, k_),
                          {dout.decay, dout.key, dout.query, dout.extra, dout.memory},
                          {to, to + U::planes * k_, dbefore});
      std::copy_n(dbefore, memory_, dmemory);
    }
    if (g.dmemory_before)
      std::copy_n(dmemory, memory_,
                  g.dmemory_before + b_ * a_.memory_width() + k_ * a_.width + head_ * memory_);
  }

  /// Numbers of a gate of one head, or of one channel with its own decays.
  static std::int64_t gates_each(const Loop& a) {
    return U::gates_per_head ? 1 : a.state_width;
  }
  static std::int64_t gate_width(const Loop& a) {
    return (U::rows > 0 ? a.width : a.heads) * gates_each(a);
  }
  /// MatrixKernels::gates.
  void gates(T* inputs, T* forgets) {
    const std::int64_t each = gates_each(a_), width = gate_width(a_);
    if constexpr (HeadGates<U>) {
      T output[3 * max_state_width + units::at_least_one(U::extras) +
               units::head_memory<U>(max_state_width)],
          before[units::at_least_one(units::head_memory<U>(max_state_width))];
      std::copy_n(memory_before(), memory_, before);
      const units::HeadOutput<T> out = units::head_at<U>(output, k_);
      for (std::int64_t i = 0; i < a_.steps; ++i) {
        const std::int64_t row = time(i) * a_.batch + b_, at = row * width + head_ * each;
        U::prepare(k_, input(row, before), out);
        U::gates(k_, input(row, before), out, inputs + at, forgets + at);
        if (is_live(row)) std::copy_n(out.memory, memory_, before);
      }
    }
    if constexpr (ChannelGates<U>) {
      for (std::int64_t row = b_; row < a_.steps * a_.batch; row += a_.batch)
        for (std::int64_t c = head_ * part_; c < (head_ + 1) * part_; ++c) {
          Channel channel{};
          for (int n = 0; n < U::inputs; ++n)
            channel.x[n] = a_.x[(row * U::inputs + n) * a_.width + c];
          for (int n = 0; n < U::vectors; ++n) channel.v[n] = a_.vectors[n * a_.width + c];
          for (int i = 0; i < k_; ++i) {
            const std::int64_t at = row * width + c * each + i;
            U::gates(channel, U::rate(a_.rows[i * a_.width + c]), inputs[at], forgets[at]);
          }
        }
    }
  }

  static constexpr int lanes = 32;

 private:
  static constexpr int stride = matrix_stride;
  static constexpr int wide = max_state_width * lanes;

  std::int64_t time(std::int64_t i) const {
    return a_.reverse ? a_.steps - 1 - i : i;
  }
  bool is_live(std::int64_t row) const {
    return !a_.mask || a_.mask[row] != 0.0f;
  }
  units::HeadInput<const T> input(std::int64_t row, const T* before) const {
    const T* from = a_.shared + row * a_.shared_width() + head_ * a_.head_input();
    return {from, from + U::planes * k_, before};
  }
  const T* memory_before() const {
    return a_.memory_before + b_ * a_.memory_width() + k_ * a_.width + head_ * memory_;
  }

  // A tile: its channels begin at channel_, and count_ of its lanes are used. Unused lanes are 0.
  void open_tile(std::int64_t first) {
    channel_ = head_ * part_ + first;
    count_ = std::min<std::int64_t>(lanes, part_ - first);
    for (int n = 0; n < U::vectors; ++n) load(a_.vectors + n * a_.width + channel_, vectors_[n]);
    if constexpr (U::rows > 0) {
      for (int i = 0; i < k_; ++i) {
        T row[lanes];
        load(a_.rows + i * a_.width + channel_, row);
#pragma omp simd
        for (int j = 0; j < lanes; ++j) rates_[i * lanes + j] = U::rate(row[j]);
      }
    }
  }
  // A full tile is copied by a few vector instructions instead of a call.
  [[gnu::always_inline]] void load(const T* from, T* to) const {
    if (count_ == lanes) {
      std::memcpy(to, from, sizeof(T) * lanes);
      return;
    }
    std::copy_n(from, count_, to);
    std::fill(to + count_, to + lanes, T(0));
  }
  [[gnu::always_inline]] void store(const T* from, T* to) const {
    if (count_ == lanes)
      std::memcpy(to, from, sizeof(T) * lanes);
    else
      std::copy_n(from, count_, to);
  }
  // Rows of a tile are far apart, so each is asked for some steps before it is read.
  static constexpr int ahead = 3;
  void prefetch_inputs(std::int64_t row) const {
    for (int n = 0; n < U::inputs; ++n)
      prefetch(a_.x + (row * U::inputs + n) * a_.width + channel_, count_);
  }
  void load_state(T* state) const {
    for (int i = 0; i < k_; ++i)
      load(a_.memory_before + b_ * a_.memory_width() + i * a_.width + channel_, state + i * lanes);
  }
  void store_state(const T* state, T* memory) const {
    for (int i = 0; i < k_; ++i) store(state + i * lanes, memory + i * a_.width + channel_);
  }
  // The tile's states before step n * stride, [K, count_].
  T* checkpoint(std::int64_t n) const {
    return a_.checkpoints + (n * a_.batch + b_) * k_ * a_.width + k_ * channel_;
  }
  void save_state(const T* state, T* to) const {
    for (int i = 0; i < k_; ++i) store(state + i * lanes, to + i * count_);
  }

  T* decays_of(int i) {
    return U::rows > 0 ? decays_ + i * k_ * lanes : decays_;
  }

  void open_step(std::int64_t t) {
    const std::int64_t row = t * a_.batch + b_;
    for (int n = 0; n < U::inputs; ++n)
      load(a_.x + (row * U::inputs + n) * a_.width + channel_, x_[n]);
    head_now_ = units::head_at<U, const T>(record_ + t * output_, k_);
    if constexpr (U::rows > 0) {
#pragma omp simd
      for (int j = 0; j < lanes; ++j) {
        Channel c;
        read_channel(j, c);
        pace_[j] = U::pace(c);
      }
    }
  }
  // Not a returned value: GCC 12 does not vectorize a loop with one that has unused members.
  [[gnu::always_inline]] void read_channel(int j, Channel& c) const {
    for (int n = 0; n < U::inputs; ++n) c.x[n] = x_[n][j];
    for (int n = 0; n < U::vectors; ++n) c.v[n] = vectors_[n][j];
    for (int n = 0; n < U::extras; ++n) c.extra[n] = head_now_.extra[n];
  }

  // The states after the opened step, from those before it; they may be the same.
  // decays: [K, lanes] of each channel, written where channels have their own.
  void step(const T* before, T* after, T* p, T* w, T* y, [[maybe_unused]] T* decays) const {
    std::fill_n(p, lanes, T(0));
    std::fill_n(y, lanes, T(0));
    if constexpr (U::reads) {
      for (int i = 0; i < k_; ++i) {
        const T key = head_now_.key[i];
#pragma omp simd
        for (int j = 0; j < lanes; ++j) p[j] += key * before[i * lanes + j];
      }
    }
#pragma omp simd
    for (int j = 0; j < lanes; ++j) {
      Channel c;
      read_channel(j, c);
      w[j] = U::write(c, p[j]);
    }
    for (int i = 0; i < k_; ++i) {
      const T key = head_now_.key[i], query = head_now_.query[i], shared = head_now_.decay[i];
#pragma omp simd
      for (int j = 0; j < lanes; ++j) {
        T decay = shared;
        if constexpr (U::rows > 0)
          decay = decays[i * lanes + j] = math::exp<T>(pace_[j] * rates_[i * lanes + j]);
        const T s = decay * before[i * lanes + j] + w[j] * key;
        y[j] += query * s;
        after[i * lanes + j] = s;
      }
    }
  }

  void backward_tile(const Gradient& g, T* sums) {
    T carry[lanes] = {}, p[stride][lanes], w[stride][lanes], y[stride][lanes];
    std::fill_n(dstates_, k_ * lanes, T(0));
    for (int n = 0; n < U::vectors; ++n) std::fill_n(dvectors_[n], lanes, T(0));
    if constexpr (U::rows > 0) std::fill_n(drates_, k_ * lanes, T(0));
    for (std::int64_t segment = (a_.steps - 1) / stride; segment >= 0; --segment) {
      const std::int64_t begin = segment * stride,
                         count = std::min<std::int64_t>(stride, a_.steps - begin);
      const T* const saved = checkpoint(segment);
      for (int i = 0; i < k_; ++i) load(saved + i * count_, states_ + i * lanes);
      // The inputs of the segment before this one, and its states.
      if (segment > 0) {
        prefetch(checkpoint(segment - 1), k_ * count_);
        for (std::int64_t i = begin - stride; i < begin; ++i)
          prefetch_inputs(time(i) * a_.batch + b_);
      }
      for (int i = 0; i < count; ++i) {
        const std::int64_t t = time(begin + i);
        const T* before = states_ + i * k_ * lanes;
        T* after = states_ + (i + 1) * k_ * lanes;
        if (is_live(t * a_.batch + b_)) {
          open_step(t);
          step(before, after, p[i], w[i], y[i], decays_of(i));
        } else {
          std::copy_n(before, k_ * lanes, after);
        }
      }
      for (int i = static_cast<int>(count) - 1; i >= 0; --i) {
        const std::int64_t t = time(begin + i), row = t * a_.batch + b_;
        if (begin + i >= ahead) {
          const std::int64_t later = time(begin + i - ahead) * a_.batch + b_;
          prefetch(g.dh + later * a_.width + channel_, count_);
          for (int n = 0; n < U::inputs; ++n)
            prefetch_output(g.dx + (later * U::inputs + n) * a_.width + channel_, count_);
        }
        T dh[lanes];
        load(g.dh + row * a_.width + channel_, dh);
#pragma omp simd
        for (int j = 0; j < lanes; ++j) carry[j] += dh[j];
        if (is_live(row)) {
          open_step(t);
          step_backward(g, t, states_ + i * k_ * lanes, states_ + (i + 1) * k_ * lanes, p[i], w[i],
                        y[i], decays_of(i), carry);
          std::fill_n(carry, lanes, T(0));
        } else {
          for (int n = 0; n < U::inputs; ++n)
            std::fill_n(g.dx + (row * U::inputs + n) * a_.width + channel_, count_, T(0));
        }
      }
    }
    if (g.dh_before) store(carry, g.dh_before + b_ * a_.width + channel_);
    if (g.dmemory_before) store_state(dstates_, g.dmemory_before + b_ * a_.memory_width());
    for (int n = 0; n < U::vectors; ++n) add(dvectors_[n], sums + n * a_.width + channel_);
    if constexpr (U::rows > 0) {
      for (int i = 0; i < k_; ++i) {
        T row[lanes], drow[lanes];
        load(a_.rows + i * a_.width + channel_, row);
        for (int j = 0; j < lanes; ++j)
          drow[j] = drates_[i * lanes + j] * U::rate_slope(row[j], rates_[i * lanes + j]);
        add(drow, sums + (U::vectors + i) * a_.width + channel_);
      }
    }
  }
  // The sum of all lanes, added in halves: one order whatever the width of vectors (sums.h).
  static T sum(T* x) {
#pragma GCC unroll 5
    for (int half = lanes / 2; half > 0; half /= 2)
#pragma omp simd
      for (int j = 0; j < half; ++j) x[j] += x[j + half];
    return x[0];
  }
  void add(const T* from, T* to) const {
    for (int j = 0; j < count_; ++j) to[j] += from[j];
  }

  // dh: the gradient of the step's output. dstates_: of the states after the step; becomes that of
  // the states before it.
  void step_backward(const Gradient& g, std::int64_t t, const T* before, const T* after, const T* p,
                     const T* w, const T* y, [[maybe_unused]] const T* decays, const T* dh) {
    const units::HeadOutput<T> dhead = units::head_at<U>(doutput_ + t * output_, k_);
    T dy[lanes], dw[lanes] = {}, dp[lanes], dpace[lanes] = {};
    T dx[units::at_least_one(U::inputs)][lanes], dextra[units::at_least_one(U::extras)][lanes];
#pragma omp simd
    for (int j = 0; j < lanes; ++j) {
      Channel c;
      read_channel(j, c);
      Channel d{};
      U::output_backward(c, y[j], dh[j], d, dy[j]);
      for (int n = 0; n < U::inputs; ++n) dx[n][j] = d.x[n];
      for (int n = 0; n < U::extras; ++n) dextra[n][j] = d.extra[n];
      for (int n = 0; n < U::vectors; ++n) dvectors_[n][j] += d.v[n];
    }
    for (int i = 0; i < k_; ++i) {
      const T key = head_now_.key[i], query = head_now_.query[i], shared = head_now_.decay[i];
      T dquery[lanes], dkey[lanes], ddecay[lanes];
#pragma omp simd
      for (int j = 0; j < lanes; ++j) {
        const int n = i * lanes + j;
        const T ds = dstates_[n] + dy[j] * query;
        dquery[j] = dy[j] * after[n];
        dkey[j] = ds * w[j];
        dw[j] += ds * key;
        if constexpr (U::rows > 0) {
          const T decay = decays[n], slope = ds * before[n] * decay;
          dpace[j] += slope * rates_[n];
          drates_[n] += slope * pace_[j];
          dstates_[n] = ds * decay;
        } else {
          ddecay[j] = ds * before[n];
          dstates_[n] = ds * shared;
        }
      }
      dhead.query[i] += sum(dquery);
      dhead.key[i] += sum(dkey);
      if constexpr (U::rows == 0) dhead.decay[i] += sum(ddecay);
    }
#pragma omp simd
    for (int j = 0; j < lanes; ++j) {
      Channel c;
      read_channel(j, c);
      Channel d{};
      U::write_backward(c, p[j], dw[j], d, dp[j]);
      if constexpr (U::rows > 0) U::pace_backward(c, dpace[j], d);
      for (int n = 0; n < U::inputs; ++n) dx[n][j] += d.x[n];
      for (int n = 0; n < U::extras; ++n) dextra[n][j] += d.extra[n];
      for (int n = 0; n < U::vectors; ++n) dvectors_[n][j] += d.v[n];
    }
    if constexpr (U::reads) {
      for (int i = 0; i < k_; ++i) {
        const T key = head_now_.key[i];
        T dkey[lanes];
#pragma omp simd
        for (int j = 0; j < lanes; ++j) {
          dkey[j] = dp[j] * before[i * lanes + j];
          dstates_[i * lanes + j] += dp[j] * key;
        }
        dhead.key[i] += sum(dkey);
      }
    }
    for (int n = 0; n < U::extras; ++n) dhead.extra[n] += sum(dextra[n]);
    const std::int64_t row = t * a_.batch + b_;
    for (int n = 0; n < U::inputs; ++n)
      store(dx[n], g.dx + (row * U::inputs + n) * a_.width + channel_);
  }

  const Loop& a_;
  const int k_;
  const std::int64_t b_, head_, part_;
  const int output_, memory_;  // numbers of a HeadOutput and of the head's memory
  T* record_;                  // [T, output_]
  T* doutput_ = nullptr;       // gradients of the record
  std::int64_t channel_ = 0, count_ = 0;
  units::HeadOutput<const T> head_now_{};
  T x_[units::at_least_one(U::inputs)][lanes];
  T vectors_[units::at_least_one(U::vectors)][lanes],
      dvectors_[units::at_least_one(U::vectors)][lanes];
  T pace_[lanes];
  T rates_[U::rows > 0 ? wide : 1], drates_[U::rows > 0 ? wide : 1];
  T states_[(stride + 1) * wide], dstates_[wide];  // [K, lanes] each
  T decays_[U::rows > 0 ? stride* wide : 1];       // likewise, of the steps of a segment
};

}  // namespace nmt::kernels
