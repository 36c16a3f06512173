// The scan of matrix-state units (units/matrix/matrix_state.h), as kernels/recurrent/matrix_scan.h
// runs it on the CPU: a warp for 32 channels of a head of a sentence, over all steps.

#include "cuda/kernels/columns.h"
#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/reduce.h"
#include "kernels/recurrent/matrix_state.h"
#include "units/all.h"

namespace nmt::kernels {
namespace {

using namespace nmt::cuda;
using namespace nmt::units;

// A recurrence as kernels read it: the sizes that follow from the unit are computed on the host.
struct MatrixScanArguments {
  MatrixRecurrence a;
  std::int64_t head_input, shared_width, memory_width, part, tiles;
  int output, memory;  // numbers of a HeadOutput and of the head's memory

  __device__ std::int64_t time(std::int64_t i) const { return a.reverse ? a.steps - 1 - i : i; }
  __device__ bool is_live(std::int64_t row) const { return !a.mask || a.mask[row] != 0.0f; }
  __device__ float* record(std::int64_t chain, std::int64_t t) const {
    return a.record + (chain * a.steps + t) * output;
  }
  // The shared vectors of a head.
  __device__ std::int64_t input(std::int64_t row, std::int64_t head) const {
    return row * shared_width + head * head_input;
  }
  // What a head remembers, in the memory of a sentence.
  __device__ std::int64_t own_memory(std::int64_t sentence, std::int64_t head) const {
    return sentence * memory_width + a.state_width * a.width + head * memory;
  }
};

MatrixScanArguments arguments_of(const MatrixRecurrence& a) {
  const MatrixState& state = *a.unit->matrix_state;
  MatrixScanArguments s;
  s.a = a;
  s.head_input = a.head_input();
  s.shared_width = a.shared_width();
  s.memory_width = a.memory_width();
  s.part = a.width / a.heads;
  s.tiles = divide_up(s.part, warp_size);
  s.memory = state.head_memory(a.state_width);
  s.output = 3 * a.state_width + state.extras + s.memory;
  return s;
}

// Scratch memory of a backward pass: for each tile the gradients of its head's record and the
// states of a segment; for each sentence those of vectors and rows.
struct MatrixScanScratch {
  float* heads;     // [B,N,tiles,T,output]
  float* segments;  // [B,N,tiles, matrix_stride+1, K, 32]
  float* sums;      // [B, (vectors + rows*K)*H]
  std::int64_t sums_stride;
};

std::int64_t sums_of(const MatrixRecurrence& a) {
  return (a.unit->vectors + a.unit->matrix_state->rows * a.state_width) * a.width;
}

// Whether the steps of a head depend on each other only through its channels' states.
template <class U>
constexpr bool forgets = U::memory_vectors + U::memory_scalars == 0;

// Threads that compute the heads' vectors: one for all steps of a head of a sentence, or, if the
// head remembers nothing, one for each step.
template <class U>
std::int64_t prepared_at_once(const MatrixRecurrence& a) {
  return a.batch * a.heads * (forgets<U> ? a.steps : 1);
}

template <class U>
__global__ void prepare_kernel(MatrixScanArguments s) {
  const int k = s.a.state_width;
  const std::int64_t chains = s.a.batch * s.a.heads, at_once = forgets<U> ? s.a.steps : 1;
  for (std::int64_t n = grid_index(); n < chains * at_once; n += grid_stride()) {
    const std::int64_t chain = n / at_once, b = chain / s.a.heads, head = chain % s.a.heads;
    const float* before = s.a.memory_before + s.own_memory(b, head);
    const std::int64_t first = forgets<U> ? n % at_once : 0;
    for (std::int64_t i = first; i < (forgets<U> ? first + 1 : s.a.steps); ++i) {
      const std::int64_t t = s.time(i), row = t * s.a.batch + b;
      const HeadOutput<float> out = head_at<U>(s.record(chain, t), k);
      const float* const from = s.a.shared + s.input(row, head);
      if (s.is_live(row))
        U::prepare(k, HeadInput<const float>{from, from + U::planes * k, before}, out);
      else
        for (int m = 0; m < s.memory; ++m) out.memory[m] = before[m];
      before = out.memory;
    }
    if constexpr (!forgets<U>)
      for (int m = 0; m < s.memory; ++m) s.a.memory[s.own_memory(b, head) + m] = before[m];
  }
}

// One channel: its place, its inputs at a step and its states, [K] with a distance of 32.
template <class U>
struct Row {
  const MatrixScanArguments& s;
  int k;
  std::int64_t tile, chain, b, channel;
  bool used;
  ChannelStep<float, U> step{};
  HeadOutput<const float> head{};
  float pace = 0.0f;

  __device__ explicit Row(const MatrixScanArguments& arguments)
      : s(arguments), k(s.a.state_width), tile(blockIdx.x), chain(tile / s.tiles) {
    const std::int64_t at = tile % s.tiles * warp_size + threadIdx.x;
    b = chain / s.a.heads;
    channel = chain % s.a.heads * s.part + at;
    used = at < s.part;
    for (int n = 0; n < U::vectors; ++n)
      step.v[n] = used ? s.a.vectors[n * s.a.width + channel] : 0.0f;
  }
  __device__ void open(std::int64_t t) {
    const std::int64_t row = t * s.a.batch + b;
    for (int n = 0; n < U::inputs; ++n)
      step.x[n] = used ? s.a.x[(row * U::inputs + n) * s.a.width + channel] : 0.0f;
    const float* const record = s.record(chain, t);
    head = head_at<U, const float>(record, k);
    for (int n = 0; n < U::extras; ++n) step.extra[n] = head.extra[n];
    if constexpr (U::rows > 0) pace = U::pace(step);
  }
  __device__ float trained(int i) const { return used ? s.a.rows[i * s.a.width + channel] : 0.0f; }
  __device__ float decay(int i) const {
    if constexpr (U::rows > 0)
      return math::exp<float>(pace * U::rate(trained(i)));
    else
      return head.decay[i];
  }
  __device__ float read(const float* states) const {
    float p = 0.0f;
    if constexpr (U::reads)
      for (int i = 0; i < k; ++i) p += head.key[i] * states[i * warp_size];
    return p;
  }
  // The states after the step, from those before it; returns the sum with the query.
  __device__ float advance(const float* before, float w, float* after) const {
    float y = 0.0f;
    for (int i = 0; i < k; ++i) {
      const float state = decay(i) * before[i * warp_size] + w * head.key[i];
      y += head.query[i] * state;
      after[i * warp_size] = state;
    }
    return y;
  }
  __device__ float* checkpoint(std::int64_t segment) const {
    return s.a.checkpoints + (segment * s.a.batch + b) * k * s.a.width + channel;
  }
};

template <class U>
__global__ void scan_kernel(MatrixScanArguments s) {
  NMT_DYNAMIC_SHARED(states, float);
  Row<U> row(s);
  if (!row.used) return;
  float* const state = states + threadIdx.x;
  const float* const before = s.a.memory_before + row.b * s.memory_width + row.channel;
  for (int i = 0; i < row.k; ++i) state[i * warp_size] = before[i * s.a.width];
  float h = s.a.h_before[row.b * s.a.width + row.channel];
  for (std::int64_t i = 0; i < s.a.steps; ++i) {
    const std::int64_t t = s.time(i), at = t * s.a.batch + row.b;
    if (s.a.checkpoints && i % matrix_stride == 0) {
      float* const to = row.checkpoint(i / matrix_stride);
      for (int n = 0; n < row.k; ++n) to[n * s.a.width] = state[n * warp_size];
    }
    if (s.is_live(at)) {
      row.open(t);
      const float w = U::write(row.step, row.read(state));
      h = U::output(row.step, row.advance(state, w, state));
    }
    s.a.h[at * s.a.width + row.channel] = h;
  }
  float* const after = s.a.memory + row.b * s.memory_width + row.channel;
  for (int i = 0; i < row.k; ++i) after[i * s.a.width] = state[i * warp_size];
}

// All 32 lanes take part in the sums over the channels; unused ones add 0.
template <class U>
__global__ void scan_backward_kernel(MatrixScanArguments s, MatrixGradient g,
                                     MatrixScanScratch scratch) {
  NMT_DYNAMIC_SHARED(shared, float);
  Row<U> row(s);
  const int k = row.k;
  const bool first = threadIdx.x == 0;
  float* const dstate = shared + threadIdx.x;                 // [K]
  float* const drate = shared + k * warp_size + threadIdx.x;  // [K], of units with rows
  float* const segment =
      scratch.segments + row.tile * (matrix_stride + 1) * k * warp_size + threadIdx.x;
  float* const sums = scratch.sums + row.b * scratch.sums_stride + row.channel;
  float dvector[at_least_one(U::vectors)] = {}, carry = 0.0f;
  for (int i = 0; i < k; ++i) {
    dstate[i * warp_size] = 0.0f;
    if constexpr (U::rows > 0) drate[i * warp_size] = 0.0f;
  }
  for (std::int64_t n = (s.a.steps - 1) / matrix_stride; n >= 0; --n) {
    const std::int64_t begin = n * matrix_stride;
    const int count = static_cast<int>(
        s.a.steps - begin < matrix_stride ? s.a.steps - begin : std::int64_t{matrix_stride});
    const float* const kept = row.checkpoint(n);
    for (int i = 0; i < k; ++i) segment[i * warp_size] = row.used ? kept[i * s.a.width] : 0.0f;
    for (int j = 0; j < count; ++j) {
      const float* const before = segment + j * k * warp_size;
      float* const after = segment + (j + 1) * k * warp_size;
      const std::int64_t t = s.time(begin + j);
      if (s.is_live(t * s.a.batch + row.b)) {
        row.open(t);
        row.advance(before, U::write(row.step, row.read(before)), after);
      } else {
        for (int i = 0; i < k; ++i) after[i * warp_size] = before[i * warp_size];
      }
    }
    for (int j = count - 1; j >= 0; --j) {
      const std::int64_t t = s.time(begin + j), at = t * s.a.batch + row.b;
      if (row.used) carry += g.dh[at * s.a.width + row.channel];
      ChannelStep<float, U> d{};
      if (s.is_live(at)) {
        const float* const before = segment + j * k * warp_size;
        const float* const after = segment + (j + 1) * k * warp_size;
        const HeadOutput<float> dhead =
            head_at<U>(scratch.heads + (row.tile * s.a.steps + t) * s.output, k);
        row.open(t);
        float y = 0.0f, dy, dw = 0.0f, dp, dpace = 0.0f;
        for (int i = 0; i < k; ++i) y += row.head.query[i] * after[i * warp_size];
        const float p = row.read(before), w = U::write(row.step, p);
        U::output_backward(row.step, y, carry, d, dy);
        for (int i = 0; i < k; ++i) {
          const float key = row.head.key[i], was = before[i * warp_size], decay = row.decay(i),
                      ds = dstate[i * warp_size] + dy * row.head.query[i];
          const float dquery = warp_sum(dy * after[i * warp_size]), dkey = warp_sum(ds * w);
          dw += ds * key;
          float ddecay = 0.0f;
          if constexpr (U::rows > 0) {
            const float rate = U::rate(row.trained(i)), slope = ds * was * decay;
            dpace += slope * rate;
            drate[i * warp_size] += slope * row.pace;
          } else {
            ddecay = warp_sum(ds * was);
          }
          dstate[i * warp_size] = ds * decay;
          if (first) {
            dhead.query[i] = dquery;
            dhead.key[i] = dkey;
            dhead.decay[i] = ddecay;
          }
        }
        U::write_backward(row.step, p, dw, d, dp);
        if constexpr (U::rows > 0) U::pace_backward(row.step, dpace, d);
        if constexpr (U::reads)
          for (int i = 0; i < k; ++i) {
            const float dkey = warp_sum(dp * before[i * warp_size]);
            dstate[i * warp_size] += dp * row.head.key[i];
            if (first) dhead.key[i] += dkey;
          }
        for (int n_extra = 0; n_extra < U::extras; ++n_extra) {
          const float sum = warp_sum(row.used ? d.extra[n_extra] : 0.0f);
          if (first) dhead.extra[n_extra] = sum;
        }
        for (int v = 0; v < U::vectors; ++v) dvector[v] += d.v[v];
        carry = 0.0f;
      }
      if (row.used)
        for (int p = 0; p < U::inputs; ++p)
          g.dx[(at * U::inputs + p) * s.a.width + row.channel] = d.x[p];
    }
  }
  if (!row.used) return;
  if (g.dh_before) g.dh_before[row.b * s.a.width + row.channel] = carry;
  if (g.dmemory_before)
    for (int i = 0; i < k; ++i)
      g.dmemory_before[row.b * s.memory_width + i * s.a.width + row.channel] =
          dstate[i * warp_size];
  for (int v = 0; v < U::vectors; ++v) sums[v * s.a.width] = dvector[v];
  if constexpr (U::rows > 0)
    for (int i = 0; i < k; ++i) {
      const float trained = row.trained(i);
      sums[(U::vectors + i) * s.a.width] =
          drate[i * warp_size] * U::rate_slope(trained, U::rate(trained));
    }
}

// The gradients of the projections of a head, from the sums of its tiles; threads as for
// prepare_kernel().
template <class U>
__global__ void prepare_backward_kernel(MatrixScanArguments s, MatrixGradient g,
                                        MatrixScanScratch scratch) {
  constexpr int most = 2 * max_state_width + 2;
  const int k = s.a.state_width, summed = s.output - s.memory;
  const std::int64_t chains = s.a.batch * s.a.heads, at_once = forgets<U> ? s.a.steps : 1;
  for (std::int64_t n = grid_index(); n < chains * at_once; n += grid_stride()) {
    const std::int64_t chain = n / at_once, b = chain / s.a.heads, head = chain % s.a.heads;
    const std::int64_t last = forgets<U> ? n % at_once : s.a.steps - 1;
    const auto gradients = [&](std::int64_t tile, std::int64_t t) {
      return scratch.heads + ((chain * s.tiles + tile) * s.a.steps + t) * s.output;
    };
    float dmemory[most], dbefore[most] = {};
    for (int m = 0; m < s.memory; ++m) dmemory[m] = 0.0f;
    for (std::int64_t i = last; i >= (forgets<U> ? last : 0); --i) {
      const std::int64_t t = s.time(i), row = t * s.a.batch + b;
      float* const to = g.dshared + s.input(row, head);
      if (!s.is_live(row)) {
        for (std::int64_t m = 0; m < s.head_input; ++m) to[m] = 0.0f;
        continue;
      }
      float* const sum = gradients(0, t);
      for (std::int64_t tile = 1; tile < s.tiles; ++tile)
        for (int m = 0; m < summed; ++m) sum[m] += gradients(tile, t)[m];
      const float* const before = i == 0 ? s.a.memory_before + s.own_memory(b, head)
                                         : head_at<U>(s.record(chain, s.time(i - 1)), k).memory;
      const HeadOutput<float> d = head_at<U>(sum, k);
      const float* const from = s.a.shared + s.input(row, head);
      const float* const record = s.record(chain, t);
      U::prepare_backward(k, HeadInput<const float>{from, from + U::planes * k, before},
                          head_at<U, const float>(record, k),
                          HeadOutput<const float>{d.decay, d.key, d.query, d.extra, dmemory},
                          HeadInput<float>{to, to + U::planes * k, dbefore});
      for (int m = 0; m < s.memory; ++m) dmemory[m] = dbefore[m];
    }
    if (g.dmemory_before && !forgets<U>)
      for (int m = 0; m < s.memory; ++m) g.dmemory_before[s.own_memory(b, head) + m] = dmemory[m];
  }
}

template <class U>
struct Launches {
  static void forward(const Cuda& cuda, const MatrixRecurrence& a) {
    const MatrixScanArguments s = arguments_of(a);
    const std::int64_t chains = a.batch * a.heads;
    launch(prepare_kernel<U>, blocks_for(cuda, prepared_at_once<U>(a), warp_size), warp_size, 0,
           cuda, s);
    launch(scan_kernel<U>, static_cast<unsigned>(chains * s.tiles), warp_size,
           sizeof(float) * warp_size * static_cast<std::size_t>(a.state_width), cuda, s);
  }
  static void backward(const Cuda& cuda, const MatrixRecurrence& a, const MatrixGradient& g,
                       const MatrixScanScratch& scratch) {
    const MatrixScanArguments s = arguments_of(a);
    const std::int64_t chains = a.batch * a.heads;
    launch(scan_backward_kernel<U>, static_cast<unsigned>(chains * s.tiles), warp_size,
           2 * sizeof(float) * warp_size * static_cast<std::size_t>(a.state_width), cuda, s, g,
           scratch);
    launch(prepare_backward_kernel<U>, blocks_for(cuda, prepared_at_once<U>(a), warp_size),
           warp_size, 0, cuda, s, g, scratch);
  }
};

struct MatrixLaunches {
  void (*forward)(const Cuda&, const MatrixRecurrence&);
  void (*backward)(const Cuda&, const MatrixRecurrence&, const MatrixGradient&,
                   const MatrixScanScratch&);
};

const MatrixLaunches& launches_of(const Unit& unit) {
  static constexpr MatrixLaunches table[] = {
#define NMT_UNIT(...)
#define NMT_MATRIX_UNIT(name, variant, ...) \
  {Launches<__VA_ARGS__>::forward, Launches<__VA_ARGS__>::backward},
#include "units/units.def"
#undef NMT_MATRIX_UNIT
#undef NMT_UNIT
  };
  const std::span<const Unit> all = matrix_units();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (&all[i] == &unit) return table[i];
  NMT_FAIL("unit {}: it is not one of matrix_units()", unit.name);
}

}  // namespace

void matrix_forward(const Cuda& cuda, const MatrixRecurrence& a) {
  launches_of(*a.unit).forward(cuda, a);
}

std::int64_t matrix_scratch(const Cuda&, const MatrixRecurrence& a) {
  const MatrixScanArguments s = arguments_of(a);
  return a.batch * a.heads * s.tiles *
             (a.steps * s.output + (matrix_stride + 1) * a.state_width * warp_size) +
         a.batch * sums_of(a);
}

void matrix_backward(const Cuda& cuda, const MatrixRecurrence& a, const MatrixGradient& g) {
  const MatrixScanArguments s = arguments_of(a);
  const std::int64_t tiles = a.batch * a.heads * s.tiles;
  MatrixScanScratch scratch;
  scratch.heads = g.scratch;
  scratch.segments = scratch.heads + tiles * a.steps * s.output;
  scratch.sums =
      scratch.segments + tiles * (matrix_stride + 1) * a.state_width * std::int64_t{warp_size};
  scratch.sums_stride = sums_of(a);
  launches_of(*a.unit).backward(cuda, a, g, scratch);
  const std::int64_t vectors = a.unit->vectors * a.width;
  const auto add = [&](std::int64_t skip, std::int64_t n, float* out) {
    const float* const sums = scratch.sums + skip;
    const std::int64_t stride = scratch.sums_stride;
    if (out)
      add_columns(
          cuda, a.batch, n,
          [=] __device__(std::int64_t r, std::int64_t i) { return sums[r * stride + i]; }, out);
  };
  add(0, vectors, g.dvectors);
  add(vectors, scratch.sums_stride - vectors, g.drows);
}

}  // namespace nmt::kernels
