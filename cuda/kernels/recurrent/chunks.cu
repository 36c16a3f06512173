#include "core/error.h"
#include "cuda/kernels/columns.h"
#include "cuda/kernels/recurrent/cell.h"
#include "cuda/kernels/recurrent/chunks.h"
#include "cuda/kernels/recurrent/unit_ahead.h"
#include "cuda/kernels/recurrent/unit_table.h"

namespace nmt::cuda {
namespace {

constexpr unsigned threads = 128;
// Steps whose loads are in flight while a thread computes.
constexpr int ahead = 4, ahead_back = 2;
constexpr int blocks = 4;  // resident on a multiprocessor, with 128 registers per thread

// A channel of a row in one chunk: the steps [begin, end).
struct ChunkRange {
  std::int64_t chunk, begin, end;
  Channel channel;

  // n: an index into [chunks, rows, H].
  __device__ ChunkRange(const UnitSteps& a, const Chunks& chunks, std::int64_t n) {
    const std::int64_t channels = a.rows * a.width, in_chunk = n % channels;
    chunk = n / channels;
    channel = {in_chunk / a.width, in_chunk % a.width};
    begin = chunk * chunks.length;
    end = begin + chunks.length < a.steps ? begin + chunks.length : a.steps;
  }
};

__device__ __forceinline__ std::int64_t element_of(const UnitSteps& a, const Channel& channel,
                                                   std::int64_t i) {
  return (channel.row + i * a.stride) * a.width + channel.column;
}
__device__ __forceinline__ bool is_live(const UnitSteps& a, const Channel& channel,
                                        std::int64_t i) {
  return !a.mask || a.mask[channel.row + i * a.stride] != 0.0f;
}

// The factor of the linear state at a step.
template <class U>
__device__ __forceinline__ float factor(const Step<float, U>& step) {
  float dnext[U::states] = {};
  dnext[linear_state_of<U>] = 1.0f;
  Step<float, U> d{};
  U::backward(step, dnext, d);
  return d.s[linear_state_of<U>];
}

template <class U, class X, class Use>
__device__ __forceinline__ void each_step_of(const UnitSteps& a, const X* x,
                                             const ChunkRange& range, Use&& use) {
  Ahead<U> ring[ahead];
  StepOffsets<U> early(a, range.channel, range.begin);
  const auto load = [&](std::int64_t i, int r) {
    ring[r].load(a, x, range.channel.column, i, early);
    early.forward(a);
  };
  float v[at_least_one(U::vectors)];
  load_planes<U::vectors>(a.vectors, 0, range.channel.column, a.width, v);
#pragma unroll
  for (int r = 0; r < ahead; ++r)
    if (range.begin + r < range.end) load(range.begin + r, r);
  for (std::int64_t begin = range.begin; begin < range.end; begin += ahead) {
#pragma unroll
    for (int r = 0; r < ahead; ++r) {
      const std::int64_t i = begin + r;
      if (i >= range.end) break;
      Step<float, U> step = ring[r].template step<X>(v);
      use(i, step, ring[r].is_live());
      if (i + ahead < range.end) load(i + ahead, r);
    }
  }
}
// use(i, step, live) for the steps [begin, end), whose inputs are loaded some steps earlier.
template <class U, class Use>
__device__ __forceinline__ void each_step(const UnitSteps& a, const ChunkRange& range, Use&& use) {
  with_inputs<U>(a, [&](auto* x) { each_step_of<U>(a, x, range, use); });
}

// The last linear state of each chunk but the last one, from a state of 0, and the product of its
// factors. Both are stored in the memory of the chunk's last two states, so no scratch memory is
// needed.
template <class U>
__global__ void __launch_bounds__(threads, blocks) ends_kernel(UnitSteps a, Chunks chunks) {
  constexpr int linear = linear_state_of<U>;
  const std::int64_t channels = a.rows * a.width;
  for (std::int64_t n = grid_index(); n < (chunks.count - 1) * channels; n += grid_stride()) {
    const ChunkRange range(a, chunks, n);
    float state = 0.0f, product = 1.0f;
    each_step<U>(a, range, [&](std::int64_t, Step<float, U>& step, bool live) {
      if (!live) return;
#pragma unroll
      for (int p = 0; p < U::states; ++p) step.s[p] = 0.0f;
      step.s[linear] = state;
      product *= factor<U>(step);
      float next[U::states];
      U::forward(step, next);
      state = next[linear];
    });
    a.next[linear][element_of(a, range.channel, range.end - 1)] = state;
    a.next[linear][element_of(a, range.channel, range.end - 2)] = product;
  }
}

// The linear state after the last step of each chunk but the last one.
__global__ void states_between_kernel(UnitSteps a, Chunks chunks, const float* before,
                                      float* states) {
  const std::int64_t channels = a.rows * a.width;
  for (std::int64_t n = grid_index(); n < channels; n += grid_stride()) {
    const Channel channel{n / a.width, n % a.width};
    float state = before[n];
    for (std::int64_t chunk = 1; chunk < chunks.count; ++chunk) {
      const std::int64_t last = chunk * chunks.length - 1;
      float& end = states[element_of(a, channel, last)];
      state = states[element_of(a, channel, last - 1)] * state + end;
      end = state;
    }
  }
}

// The states of each chunk. The linear state of its last step, which the next chunk reads, is
// already set. The other states of masked steps at the start of a chunk are left to
// passed_states_kernel().
template <class U>
__global__ void __launch_bounds__(threads, blocks) chunks_kernel(UnitSteps a, Chunks chunks) {
  constexpr int linear = linear_state_of<U>;
  const std::int64_t channels = a.rows * a.width;
  for (std::int64_t n = grid_index(); n < chunks.count * channels; n += grid_stride()) {
    const ChunkRange range(a, chunks, n);
    const std::int64_t first = range.channel.row * a.width + range.channel.column;
    float state[U::states];
#pragma unroll
    for (int p = 0; p < U::states; ++p) state[p] = range.chunk == 0 ? a.previous[p][first] : 0.0f;
    if (range.chunk > 0)
      state[linear] = a.next[linear][element_of(a, range.channel, range.begin - 1)];
    bool is_known = range.chunk == 0;
    each_step<U>(a, range, [&](std::int64_t i, Step<float, U>& step, bool live) {
      if (live) {
#pragma unroll
        for (int p = 0; p < U::states; ++p) step.s[p] = state[p];
        U::forward(step, state);
        is_known = true;
      }
      const std::int64_t to = element_of(a, range.channel, i);
      if (i + 1 == range.end && range.chunk + 1 < chunks.count)
        state[linear] = a.next[linear][to];
      else
        a.next[linear][to] = state[linear];
#pragma unroll
      for (int p = 0; p < U::states; ++p)
        if (p != linear && is_known) a.next[p][to] = state[p];
      if (a.next_rounded && (linear == 0 || is_known)) assign(a.next_rounded[to], state[0]);
    });
  }
}

// The states other than the linear one of masked steps at the start of a chunk: those of the last
// step before that is not masked, or the first ones.
template <class U>
__global__ void passed_states_kernel(UnitSteps a, Chunks chunks) {
  const std::int64_t channels = a.rows * a.width;
  for (std::int64_t n = grid_index(); n < (chunks.count - 1) * channels; n += grid_stride()) {
    const ChunkRange range(a, chunks, n + channels);
    if (is_live(a, range.channel, range.begin)) continue;
    std::int64_t from = range.begin - 1;
    while (from >= 0 && !is_live(a, range.channel, from)) --from;
#pragma unroll
    for (int p = 0; p < U::states; ++p) {
      if (p == linear_state_of<U>) continue;
      const float state = from < 0
                              ? a.previous[p][range.channel.row * a.width + range.channel.column]
                              : a.next[p][element_of(a, range.channel, from)];
      for (std::int64_t i = range.begin; i < range.end && !is_live(a, range.channel, i); ++i) {
        a.next[p][element_of(a, range.channel, i)] = state;
        if (p == 0 && a.next_rounded)
          assign(a.next_rounded[element_of(a, range.channel, i)], state);
      }
    }
  }
}

// Scratch memory of the backward pass.
struct ChunkScratch {
  float* products;  // [chunks-1, rows, H] of the factors of chunk 1 and later ones
  float* carries;   // [chunks-1, rows, H] the gradient of the linear state after chunk 0 and later
  float* sums;      // [chunks, rows, vectors*H] gradients of the vectors
};

ChunkScratch chunk_scratch(const Chunks& chunks, std::int64_t channels, float* memory) {
  float* const carries = memory + (chunks.count - 1) * channels;
  return {memory, carries, carries + (chunks.count - 1) * channels};
}

// The gradient that the masked steps after a chunk add to h after its last step.
__device__ __forceinline__ float passed_gradient(const UnitSteps& a, const float* dh,
                                                 const ChunkRange& range) {
  std::int64_t i = range.end;
  while (i < a.steps && !is_live(a, range.channel, i)) ++i;
  float sum = 0.0f;
  while (--i >= range.end) sum += dh[element_of(a, range.channel, i)];
  return sum;
}

template <class U, class X, class Use>
__device__ __forceinline__ void each_step_back_of(const UnitSteps& a, const X* x, const float* dh,
                                                  const ChunkRange& range,
                                                  float (&carry)[U::states], Use&& use) {
  Ahead<U> ring[ahead_back];
  float before[ahead_back][U::states], dh_ring[ahead_back], v[at_least_one(U::vectors)];
  StepOffsets<U> early(a, range.channel, range.end - 1);
  load_planes<U::vectors>(a.vectors, 0, range.channel.column, a.width, v);
  const auto load = [&](std::int64_t i, int r) {
    ring[r].load(a, x, range.channel.column, i, early);
    dh_ring[r] = dh[early.channel];
    early.back(a);
#pragma unroll
    for (int p = 0; p < U::states; ++p)
      before[r][p] = i == 0 ? a.previous[p][range.channel.row * a.width + range.channel.column]
                            : a.next[p][early.channel];
  };
#pragma unroll
  for (int r = 0; r < ahead_back; ++r)
    if (range.end - 1 - r >= range.begin) load(range.end - 1 - r, r);
  for (std::int64_t begin = range.end - 1; begin >= range.begin; begin -= ahead_back) {
#pragma unroll
    for (int r = 0; r < ahead_back; ++r) {
      const std::int64_t i = begin - r;
      if (i < range.begin) break;
      Step<float, U> step = ring[r].template step<X>(v);
#pragma unroll
      for (int p = 0; p < U::states; ++p) step.s[p] = before[r][p];
      carry[0] += dh_ring[r];
      use(i, step, ring[r].is_live());
      if (i - ahead_back >= range.begin) load(i - ahead_back, r);
    }
  }
}
// use(i, step, live) for the steps from the last to the first, carry[0] including dh.
template <class U, class Use>
__device__ __forceinline__ void each_step_back(const UnitSteps& a, const float* dh,
                                               const ChunkRange& range, float (&carry)[U::states],
                                               Use&& use) {
  with_inputs<U>(a, [&](auto* x) { each_step_back_of<U>(a, x, dh, range, carry, use); });
}

// The gradient of the linear state before each chunk but the first, from one of 0 after it, and the
// product of the chunk's factors.
template <class U>
__global__ void ends_backward_kernel(UnitSteps a, const float* dh, Chunks chunks,
                                     ChunkScratch scratch) {
  constexpr int linear = linear_state_of<U>;
  const std::int64_t channels = a.rows * a.width;
  for (std::int64_t n = grid_index(); n < (chunks.count - 1) * channels; n += grid_stride()) {
    const ChunkRange range(a, chunks, n + channels);
    float carry[U::states] = {}, product = 1.0f;
    if constexpr (linear != 0) carry[0] = passed_gradient(a, dh, range);
    each_step_back<U>(a, dh, range, carry,
                      [&](std::int64_t, const Step<float, U>& step, bool live) {
                        if (!live) return;
                        product *= factor<U>(step);
                        Step<float, U> d{};
                        U::backward(step, carry, d);
#pragma unroll
                        for (int p = 0; p < U::states; ++p) carry[p] = d.s[p];
                      });
    scratch.carries[n] = carry[linear];
    scratch.products[n] = product;
  }
}

// The gradient of the linear state after each chunk but the last one, in place.
__global__ void gradients_between_kernel(std::int64_t channels, Chunks chunks,
                                         ChunkScratch scratch) {
  for (std::int64_t n = grid_index(); n < channels; n += grid_stride()) {
    float carry = 0.0f;
    for (std::int64_t chunk = chunks.count - 2; chunk >= 0; --chunk) {
      float& end = scratch.carries[chunk * channels + n];
      carry = scratch.products[chunk * channels + n] * carry + end;
      end = carry;
    }
  }
}

template <class U>
__global__ void chunks_backward_kernel(UnitSteps a, UnitStepsGradient g, Chunks chunks,
                                       ChunkScratch scratch) {
  constexpr int linear = linear_state_of<U>;
  const std::int64_t h = a.width, channels = a.rows * h;
  for (std::int64_t n = grid_index(); n < chunks.count * channels; n += grid_stride()) {
    const ChunkRange range(a, chunks, n);
    float carry[U::states] = {}, dv[at_least_one(U::vectors)] = {};
    if (range.chunk + 1 < chunks.count) {
      if constexpr (linear != 0) carry[0] = passed_gradient(a, g.dh, range);
      carry[linear] = scratch.carries[n];
    }
    each_step_back<U>(
        a, g.dh, range, carry, [&](std::int64_t i, const Step<float, U>& step, bool live) {
          Step<float, U> d{};
          if (live) {
            U::backward(step, carry, d);
#pragma unroll
            for (int p = 0; p < U::vectors; ++p) dv[p] += d.v[p];
#pragma unroll
            for (int p = 0; p < U::states; ++p) carry[p] = d.s[p];
          }
          store_dx<U>(g, range.channel.row + i * a.stride, range.channel.column, h, d.x);
        });
    store_planes<U::vectors>(scratch.sums, range.chunk * a.rows + range.channel.row,
                             range.channel.column, h, dv);
    if (range.chunk > 0) continue;
#pragma unroll
    for (int p = 0; p < U::states; ++p) g.carry[p][n] = carry[p];
  }
}

struct ChunkKernels {
  void (*forward)(const Cuda&, const UnitSteps&, const Chunks&) = nullptr;
  void (*backward)(const Cuda&, const UnitSteps&, const UnitStepsGradient&, const Chunks&,
                   const ChunkScratch&) = nullptr;
};

unsigned grid_of(const Cuda& cuda, const UnitSteps& a, std::int64_t chunks) {
  return blocks_for(cuda, chunks * a.rows * a.width, threads);
}

template <class U>
void forward(const Cuda& cuda, const UnitSteps& a, const Chunks& chunks) {
  constexpr int linear = linear_state_of<U>;
  launch(ends_kernel<U>, grid_of(cuda, a, chunks.count - 1), threads, 0, cuda, a, chunks);
  launch(states_between_kernel, grid_of(cuda, a, 1), threads, 0, cuda, a, chunks,
         a.previous[linear], a.next[linear]);
  launch(chunks_kernel<U>, grid_of(cuda, a, chunks.count), threads, 0, cuda, a, chunks);
  if (U::states > 1 && a.mask)
    launch(passed_states_kernel<U>, grid_of(cuda, a, chunks.count - 1), threads, 0, cuda, a,
           chunks);
}

template <class U>
void backward(const Cuda& cuda, const UnitSteps& a, const UnitStepsGradient& g,
              const Chunks& chunks, const ChunkScratch& scratch) {
  launch(ends_backward_kernel<U>, grid_of(cuda, a, chunks.count - 1), threads, 0, cuda, a, g.dh,
         chunks, scratch);
  launch(gradients_between_kernel, grid_of(cuda, a, 1), threads, 0, cuda, a.rows * a.width, chunks,
         scratch);
  launch(chunks_backward_kernel<U>, grid_of(cuda, a, chunks.count), threads, 0, cuda, a, g, chunks,
         scratch);
}

template <class U>
constexpr ChunkKernels describe() {
  if constexpr (linear_state_of<U> >= 0) {
    static_assert(U::recurrents + U::late == 0 && position_vectors_of<U> == 0 &&
                      (linear_state_of<U> > 0 || U::states == 1),
                  "chunks pass one state");
    return {forward<U>, backward<U>};
  } else {
    return {};
  }
}

// Null members: the unit's state is not linear.
const ChunkKernels& chunk_kernels(const kernels::Unit& unit) {
  static constexpr ChunkKernels table[] = {
#define NMT_UNIT(name, variant, ...) describe<__VA_ARGS__>(),
#include "units/units.def"
#undef NMT_UNIT
  };
  return table[number_of(unit)];
}

}  // namespace

Chunks chunks_of(const Cuda& cuda, const kernels::Recurrence& a) {
  // Resident threads of a multiprocessor; the least number of chunks that pays for two passes; the
  // least number of steps of a chunk that pays for the states between chunks.
  constexpr std::int64_t resident = blocks * threads, min_chunks = 4, min_length = 32;
  const CudaDevice::State& state = state_of(cuda);
  const std::int64_t channels = a.batch * a.cell.width;
  if (!state.with_chunks || channels == 0 || !chunk_kernels(*a.cell.unit).forward) return {};
  const std::int64_t count =
      std::min(resident * state.multiprocessors / channels, a.steps / min_length);
  if (count < min_chunks) return {};
  const std::int64_t length = divide_up(a.steps, count);
  return {divide_up(a.steps, length), length};
}

void chunks_forward(const Cuda& cuda, const kernels::Recurrence& a, const Chunks& chunks,
                    UnitSteps first) {
  set_parameters(a.cell, a.record, 0, first);
  chunk_kernels(*a.cell.unit).forward(cuda, first, chunks);
}

std::int64_t chunks_scratch(const kernels::Recurrence& a, const Chunks& chunks) {
  return (2 * (chunks.count - 1) + chunks.count * a.cell.unit->vectors) * a.batch * a.cell.width;
}

void chunks_backward(const Cuda& cuda, const kernels::Recurrence& a,
                     const kernels::RecurrenceGradient& g, const Chunks& chunks, UnitSteps first) {
  NMT_CHECK(!g.cell.dx || !g.cell.dx_rounded, "unit {}: {} steps round dx beside dx",
            a.cell.unit->name, a.steps);
  const std::int64_t h = a.cell.width, vectors = a.cell.unit->vectors * h;
  const ChunkScratch scratch = chunk_scratch(chunks, a.batch * h, g.scratch);
  set_parameters(a.cell, a.record, 0, first);
  const std::int64_t row = a.reverse ? (a.steps - 1) * a.batch : 0;
  UnitStepsGradient d;
  d.dh = g.dh + row * h;
  d.dx = part(g.cell.dx, row, a.cell.unit->inputs * h);
  d.dx_rounded = part(g.cell.dx_rounded, row, a.cell.unit->inputs * h);
  std::copy_n(g.dinitial, a.cell.unit->states, d.carry);
  chunk_kernels(*a.cell.unit).backward(cuda, first, d, chunks, scratch);
  if (!g.cell.dvectors || vectors == 0) return;
  const float* const sums = scratch.sums;
  add_columns(
      cuda, chunks.count * a.batch, vectors,
      [=] __device__(std::int64_t r, std::int64_t i) { return sums[r * vectors + i]; },
      g.cell.dvectors);
}

}  // namespace nmt::cuda
