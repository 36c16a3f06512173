#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/recurrent/matrix/scan.h"

namespace nmt::cuda {
namespace {

using namespace nmt::units;

// Tiles of the columns of P, of units that read their states.
template <class U>
constexpr std::int64_t factor_tiles(const ScanArguments& s) {
  return U::reads ? divide_up(s.a.state_width, warp_size) : 0;
}

// E of a tile, and the diagonals of P.
template <class U>
__device__ void end_of_tile(const ScanArguments& s, std::int64_t n, float* shared) {
  Row<U> row(s, n);
  if (!row.used) return;
  float* const state = shared + threadIdx.x;
  float* const factor = state + row.k * warp_size;
  for (int i = 0; i < row.k; ++i) {
    state[i * warp_size] = 0.0f;
    if constexpr (!U::reads) factor[i * warp_size] = 1.0f;
  }
  for (std::int64_t i = row.begin; i < row.end; ++i) {
    if (!row.is_live(i)) continue;
    row.open(i);
    const float w = U::write(row.step, row.read(state));
    for (int j = 0; j < row.k; ++j) {
      const float decay = row.decay(j);
      float& now = state[j * warp_size];
      now = decay * now + w * row.head.key[j];
      if constexpr (!U::reads) factor[j * warp_size] *= decay;
    }
  }
  const std::int64_t to = s.between(row.chunk, row.b, row.channel);
  for (int i = 0; i < row.k; ++i) {
    s.states[to + i * s.a.width] = state[i * warp_size];
    if constexpr (!U::reads) s.factors[to + i * s.a.width] = factor[i * warp_size];
  }
}

// 32 columns of the P of a head: the states that each reaches from a unit vector, without inputs.
template <class U>
__device__ void columns_of_factor(const ScanArguments& s, std::int64_t n, float* shared) {
  const std::int64_t tiles = factor_tiles<U>(s), chunk = n / (s.chains * tiles),
                     chain = n / tiles % s.chains;
  const int column = static_cast<int>(n % tiles) * warp_size + static_cast<int>(threadIdx.x);
  Row<U> row(s, chunk, chain, s.part);
  if (column >= row.k) return;
  float* const state = shared + threadIdx.x;
  for (int i = 0; i < row.k; ++i) state[i * warp_size] = i == column ? 1.0f : 0.0f;
  for (std::int64_t i = row.begin; i < row.end; ++i) {
    if (!row.is_live(i)) continue;
    row.open(i);
    ChannelStep<float, U> d{};
    float slope;
    U::write_backward(row.step, 0.0f, 1.0f, d, slope);
    row.advance(state, slope * row.read(state), state);
  }
  float* const to = s.factors + (chunk * s.chains + chain) * row.k * row.k + column;
  for (int i = 0; i < row.k; ++i) to[i * row.k] = state[i * warp_size];
}

template <class U>
__global__ void ends_kernel(ScanArguments s) {
  NMT_DYNAMIC_SHARED(shared, float);
  const std::int64_t tiles = (s.chunks - 1) * s.chains * s.tiles;
  if (blockIdx.x < tiles)
    end_of_tile<U>(s, blockIdx.x, shared);
  else if constexpr (U::reads)
    columns_of_factor<U>(s, blockIdx.x - tiles, shared);
}

template <class U>
struct Ends {
  static void run(const Cuda& cuda, const ScanArguments& s) {
    launch(ends_kernel<U>,
           static_cast<unsigned>((s.chunks - 1) * s.chains * (s.tiles + factor_tiles<U>(s))),
           warp_size, 2 * sizeof(float) * warp_size * static_cast<std::size_t>(s.a.state_width),
           cuda, s);
  }
};

// The order in which the values between chunks are joined, in place. Before the join, value c is
// the result of chunk c (forward) or of chunk c + 1 (backward) from an input of 0. The join adds P
// of that chunk times the chunk's input; backward, P is transposed.
struct Between {
  const ScanArguments& s;
  bool back;

  __device__ std::int64_t chunk(std::int64_t n) const { return back ? s.chunks - 2 - n : n; }
  // The chunk between the values n - 1 and n. Backward, nothing enters the last chunk.
  __device__ std::int64_t passed(std::int64_t n) const { return back ? chunk(n) + 1 : n; }
  __device__ bool has_passed(std::int64_t n) const { return !back || n > 0; }
};

__global__ void join_diagonal_kernel(ScanArguments s, float* values, bool back) {
  const Between between{s, back};
  const std::int64_t h = s.a.width, numbers = s.a.state_width * h;
  for (std::int64_t n = grid_index(); n < s.a.batch * numbers; n += grid_stride()) {
    const std::int64_t b = n / numbers, in_sentence = n % numbers;
    float value = back ? 0.0f : s.a.memory_before[b * s.memory_width + in_sentence];
    for (std::int64_t m = 0; m < s.chunks - 1; ++m) {
      float& end = values[s.between(between.chunk(m), b, in_sentence)];
      value = between.has_passed(m)
                  ? s.factors[s.between(between.passed(m), b, in_sentence)] * value + end
                  : end;
      end = value;
    }
  }
}

__global__ void join_matrices_kernel(ScanArguments s, float* values, bool back) {
  NMT_DYNAMIC_SHARED(shared, float);
  const Between between{s, back};
  const int k = s.a.state_width;
  const std::int64_t h = s.a.width, chain = blockIdx.x / s.tiles, b = chain / s.a.heads,
                     in_head = blockIdx.x % s.tiles * warp_size + threadIdx.x,
                     channel = chain % s.a.heads * s.part + in_head;
  if (in_head >= s.part) return;
  float* const value = shared + threadIdx.x;
  for (int i = 0; i < k; ++i)
    value[i * warp_size] = back ? 0.0f : s.a.memory_before[b * s.memory_width + i * h + channel];
  for (std::int64_t n = 0; n < s.chunks - 1; ++n) {
    float* const end = values + s.between(between.chunk(n), b, channel);
    const float* const factor = s.factors + (between.passed(n) * s.chains + chain) * k * k;
    for (int i = 0; i < k && between.has_passed(n); ++i) {
      float sum = end[i * h];
      for (int j = 0; j < k; ++j)
        sum += factor[back ? j * k + i : i * k + j] * value[j * warp_size];
      end[i * h] = sum;
    }
    for (int i = 0; i < k; ++i) value[i * warp_size] = end[i * h];
  }
}

template <class U>
struct Join {
  static void run(const Cuda& cuda, const ScanArguments& s, float* values, bool back) {
    if constexpr (U::reads)
      launch(join_matrices_kernel, static_cast<unsigned>(s.chains * s.tiles), warp_size,
             sizeof(float) * warp_size * static_cast<std::size_t>(s.a.state_width), cuda, s, values,
             back);
    else
      launch(join_diagonal_kernel, blocks_for(cuda, s.a.batch * s.a.state_width * s.a.width, 128),
             128, 0, cuda, s, values, back);
  }
};

template <class U>
struct Reads {
  static bool run() { return U::reads; }
};

template <class U>
struct Factors {
  static_assert(!(U::reads && U::rows > 0), "P belongs to a head: its channels have one decay");
  static std::int64_t run(const ScanArguments& s) {
    const std::int64_t k = s.a.state_width;
    return (s.chunks - 1) * (U::reads ? s.chains * k * k : s.a.batch * k * s.a.width);
  }
};

}  // namespace

std::int64_t states_between(const ScanArguments& s) {
  return (s.chunks - 1) * s.a.batch * s.a.state_width * s.a.width;
}
bool has_matrix_factors(const kernels::Unit& unit) {
  return entry_of<Reads>(&unit)();
}
std::int64_t factors_between(const ScanArguments& s) {
  return entry_of<Factors>(s.a.unit)(s);
}

void scan_ends(const Cuda& cuda, const ScanArguments& s) {
  entry_of<Ends>(s.a.unit)(cuda, s);
}
void join_chunks(const Cuda& cuda, const ScanArguments& s) {
  entry_of<Join>(s.a.unit)(cuda, s, s.states, false);
}
void join_gradients(const Cuda& cuda, const ScanArguments& s, float* carries) {
  entry_of<Join>(s.a.unit)(cuda, s, carries, true);
}

}  // namespace nmt::cuda
