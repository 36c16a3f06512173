#pragma once

// Shared by the kernels of matrix-state units (units/matrix/matrix_state.h). A block is a warp; it
// computes a tile, 32 channels of a head of a sentence, over all steps or over those of one chunk.
//
// Few long sentences have fewer tiles than the device computes at once. Their steps are then
// divided into chunks as those of element-wise units are (chunks.h): the states S of a channel are
// affine in those before,
//   S_k = decay_k S'_k + key_k write(sum_j key_j S'_j)
// so a chunk is the states E that it reaches from 0 and a matrix P of K x K numbers, and S = P S' +
// E. P is diagonal where `write` does not depend on the sum. With `reads` it belongs to the head.

#include "core/error.h"
#include "cuda/runtime/launch.h"
#include "kernels/recurrent/matrix_state.h"
#include "units/all.h"

#include <array>

namespace nmt::cuda {

// A recurrence as kernels read it: the sizes that follow from the unit are computed on the host.
struct ScanArguments {
  kernels::MatrixRecurrence a;
  std::int64_t head_input, shared_width, memory_width;
  std::int64_t part;    ///< channels of a head
  std::int64_t chains;  ///< B*N
  std::int64_t tiles;   ///< of a chain
  int output, memory;   ///< numbers of a HeadOutput and of the head's memory
  std::int64_t chunks;  ///< 1: the steps are not divided
  std::int64_t length;  ///< steps of each chunk but the last one, a multiple of matrix_stride
  float* states;        ///< [chunks-1,B,K,H] after each chunk but the last one: E, then S
  float* factors;       ///< [chunks-1,B,K,H] the diagonals of P, or [chunks-1,B,N,K,K] with `reads`

  __device__ std::int64_t time(std::int64_t i) const { return a.reverse ? a.steps - 1 - i : i; }
  __device__ bool is_live(std::int64_t row) const { return !a.mask || a.mask[row] != 0.0f; }
  // The row of step i of a sentence.
  __device__ std::int64_t row(std::int64_t i, std::int64_t sentence) const {
    return time(i) * a.batch + sentence;
  }
  __device__ std::int64_t end(std::int64_t chunk) const {
    return (chunk + 1) * length < a.steps ? (chunk + 1) * length : a.steps;
  }
  __device__ float* record(std::int64_t chain, std::int64_t t) const {
    return a.record + (chain * a.steps + t) * output;
  }
  // The shared vectors of a head.
  __device__ std::int64_t input(std::int64_t input_row, std::int64_t head) const {
    return input_row * shared_width + head * head_input;
  }
  // What a head remembers, in the memory of a sentence.
  __device__ std::int64_t own_memory(std::int64_t sentence, std::int64_t head) const {
    return sentence * memory_width + a.state_width * a.width + head * memory;
  }
  // The offset of value 0 of a channel in [chunks-1,B,K,H]; the stride of its values is H.
  __device__ std::int64_t between(std::int64_t chunk, std::int64_t sentence,
                                  std::int64_t channel) const {
    return (chunk * a.batch + sentence) * a.state_width * a.width + channel;
  }
};

ScanArguments scan_of(const Cuda& cuda, const kernels::MatrixRecurrence& a);

/// Whether P is a matrix of each head, in units with `reads`.
bool has_matrix_factors(const kernels::Unit& unit);
/// Floats of `states` and `factors`.
std::int64_t states_between(const ScanArguments& s);
std::int64_t factors_between(const ScanArguments& s);

// Scratch memory of a backward pass.
struct MatrixScanScratch {
  float* heads;     // [B,N,tiles,T,output] gradients of the record
  float* segments;  // [chunks,B,N,tiles, matrix_stride+1, K, 32] the states of a segment
  float* sums;      // [chunks,B, (vectors + rows*K)*H] gradients of vectors and rows
  float* carries;   // [chunks-1,B,K,H] gradients of the states after each chunk but the last one
  std::int64_t sums_stride;
};

/// The heads' vectors of all steps.
void prepare_heads(const Cuda& cuda, const ScanArguments& s);
void prepare_heads_backward(const Cuda& cuda, const ScanArguments& s,
                            const kernels::MatrixGradient& g, const MatrixScanScratch& scratch);
/// E and P of each chunk but the last one.
void scan_ends(const Cuda& cuda, const ScanArguments& s);
/// The states between chunks: after chunk c, P_c S + E_c.
void join_chunks(const Cuda& cuda, const ScanArguments& s);
/// The gradients of the states between chunks, from those that pass through one chunk each.
void join_gradients(const Cuda& cuda, const ScanArguments& s, float* carries);
/// Outputs, checkpoints and the last states, each chunk from its first states.
void scan_forward(const Cuda& cuda, const ScanArguments& s);
void scan_backward(const Cuda& cuda, const ScanArguments& s, const kernels::MatrixGradient& g,
                   const MatrixScanScratch& scratch);

/// Of<U>::run of a unit, one of matrix_state_units().
template <template <class> class Of>
auto* entry_of(const kernels::Unit* unit) {
  using namespace units;
  static constexpr std::array table = {
#define NMT_UNIT(...)
#define NMT_MATRIX_STATE_UNIT(name, variant, ...) &Of<__VA_ARGS__>::run,
#include "units/units.def"
#undef NMT_UNIT
  };
  const std::span<const kernels::Unit> all = kernels::matrix_state_units();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (&all[i] == unit) return table[i];
  NMT_FAIL("unit {}: it is not one of matrix_state_units()", unit->name);
}

// One channel in one chunk: its indices, its inputs at a step and its states, [K] with a stride of
// 32.
template <class U>
struct Row {
  const ScanArguments& s;
  int k;
  std::int64_t chunk, tile, chain, b, channel, begin, end;
  bool used;
  units::ChannelStep<float, U> step{};
  units::HeadOutput<const float> head{};
  float pace = 0.0f;

  // n: an index into [chunks,B,N,tiles].
  __device__ Row(const ScanArguments& scan, std::int64_t n)
      : Row(scan, n / (scan.chains * scan.tiles), n % (scan.chains * scan.tiles) / scan.tiles,
            n % scan.tiles * warp_size + threadIdx.x) {
    tile = n % (s.chains * s.tiles);
  }
  // in_head: the index of the channel in its head. Channels past the end of the head are not used;
  // their inputs are 0.
  __device__ Row(const ScanArguments& scan, std::int64_t of_chunk, std::int64_t of_chain,
                 std::int64_t in_head)
      : s(scan),
        k(scan.a.state_width),
        chunk(of_chunk),
        tile(0),
        chain(of_chain),
        b(of_chain / scan.a.heads),
        channel(of_chain % scan.a.heads * scan.part + in_head),
        begin(of_chunk * scan.length),
        end(scan.end(of_chunk)),
        used(in_head < scan.part) {
    for (int n = 0; n < U::vectors; ++n)
      step.v[n] = used ? s.a.vectors[n * s.a.width + channel] : 0.0f;
  }
  __device__ void open(std::int64_t i) {
    const std::int64_t row = s.row(i, b);
    for (int n = 0; n < U::inputs; ++n)
      step.x[n] = used ? s.a.x[(row * U::inputs + n) * s.a.width + channel] : 0.0f;
    head = units::head_at<U, const float>(s.record(chain, s.time(i)), k);
    for (int n = 0; n < U::extras; ++n) step.extra[n] = head.extra[n];
    if constexpr (U::rows > 0) pace = U::pace(step);
  }
  __device__ bool is_live(std::int64_t i) const { return s.is_live(s.row(i, b)); }
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

}  // namespace nmt::cuda
