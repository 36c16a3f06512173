#include "cuda/kernels/add_sum.h"
#include "cuda/kernels/assign.h"
#include "cuda/kernels/attention/attention.h"
#include "cuda/kernels/columns.h"
#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/reduce.h"
#include "cuda/kernels/vector.h"
#include "cuda/libraries/blas.h"
#include "kernels/math.h"

#include <type_traits>

// A block computes one head of a row for `tile` of its steps. A warp sums the score of a position
// and computes the softmax over the positions of a step; the threads share the context's columns.
// Scores are stored in the memory of the weights, so the length of a sentence is not limited.

namespace nmt::kernels {
namespace {

using namespace nmt::cuda;

constexpr int steps_of_tile = 4;
constexpr int max_threads = 512, max_shares = 8;
// Lengths, widths and indices within a row are 32 bits wide: 64 cost registers. Strides are 64.
constexpr int warp = static_cast<int>(warp_size);

/// Rows of floats, one for each step of the block or for each position.
template <class T>
struct Rows {
  T* data;
  std::int64_t stride;
  __device__ __forceinline__ T* operator[](std::int64_t i) const { return data + i * stride; }
};

/// The block's part: `count` steps of a row.
template <int tile>
struct TilePosition {
  std::int64_t row, first, rows, head;
  int count;
  __device__ __forceinline__ TilePosition(std::int64_t target_steps, std::int64_t all_rows)
      : rows(all_rows) {
    const std::int64_t tiles = divide_up(target_steps, tile);
    row = blockIdx.x / tiles;
    first = blockIdx.x % tiles * tile;
    head = blockIdx.y;
    count = tile == 1                     ? 1
            : target_steps - first < tile ? static_cast<int>(target_steps - first)
                                          : tile;
  }
  /// Of x [T,rows,heads,n], which may be null.
  template <class T>
  __device__ __forceinline__ Rows<T> steps(T* x, std::int64_t heads, std::int64_t n) const {
    return {x ? x + ((first * rows + row) * heads + head) * n : nullptr, rows * heads * n};
  }
};

/// Of two matrices, one of which is null, the one with elements of type Y.
template <class Y>
__device__ __forceinline__ const Y* of_type(const float* plain, const Bfloat16* rounded) {
  if constexpr (std::is_same_v<Y, float>)
    return plain;
  else
    return rounded;
}

/// Sentence b's part of x [S,B,heads,n].
template <class T>
__device__ __forceinline__ Rows<T> positions(const Attention& a, T* x, std::int64_t b,
                                             std::int64_t head, std::int64_t n) {
  return {x + (b * a.heads + head) * n, a.sentences * a.heads * n};
}

/// to[i][s] = scale * sum over j of x[i][j] y[s][j], or of v[j] tanh(x[i][j] + y[s][j]) where v is
/// given. A warp takes several positions at once, so that their loads and sums do not wait for each
/// other.
template <bool additive, int tile, int n, class Y>
__device__ __forceinline__ void each_score(int count, int length, int width, Rows<const float> x,
                                           Rows<const Y> y, const float* v, float scale,
                                           Rows<float> to) {
  constexpr int at_once = tile == 1 && sizeof(Y) == 2 ? 3 : 2;
  const int lane = static_cast<int>(threadIdx.x) % warp,
            warps = static_cast<int>(blockDim.x) / warp;
  for (int first = static_cast<int>(threadIdx.x) / warp; first < length; first += at_once * warps) {
    float sum[at_once][tile] = {};
#pragma unroll 1
    for (int j = lane * n; j < width; j += warp * n) {
      Stored<n, Y> keys[at_once];
      const Y* key = y[first] + j;
#pragma unroll
      for (int p = 0; p < at_once; ++p, key += warps * y.stride)
        if (first + p * warps < length) keys[p] = load_stored<n>(key);
      Floats<n> vector{};
      if constexpr (additive) vector = load<n>(v + j);
#pragma unroll
      for (int i = 0; i < tile; ++i) {
        if (i >= count) break;
        const Floats<n> query = load<n>(x[i] + j);
#pragma unroll
        for (int p = 0; p < at_once; ++p) {
          if (first + p * warps >= length) break;
          const Floats<n> k = widened(keys[p]);
#pragma unroll
          for (int e = 0; e < n; ++e)
            sum[p][i] += additive ? vector[e] * math::tanh(query[e] + k[e]) : query[e] * k[e];
        }
      }
    }
#pragma unroll
    for (int p = 0; p < at_once; ++p)
#pragma unroll
      for (int i = 0; i < tile; ++i) sum[p][i] = warp_sum(sum[p][i]);
    if (lane > 0) continue;
#pragma unroll
    for (int p = 0; p < at_once; ++p)
#pragma unroll
      for (int i = 0; i < tile; ++i)
        if (const int s = first + p * warps; s < length && i < count) to[i][s] = scale * sum[p][i];
  }
}

/// to[i][j] = sum over s of w[i][s] y[s][j], or of w[i][s] v[j] (1 - tanh^2(x[i][j] + y[s][j]))
/// where v is given. Where there are more threads than columns, they share the positions, and
/// shared memory holds their partial sums.
template <bool slope, int tile, int n, class Y>
__device__ __forceinline__ void each_sum(int count, int length, int width, Rows<const float> w,
                                         Rows<const Y> y, Rows<const float> x, const float* v,
                                         Rows<float> to, Rows<Bfloat16> rounded) {
  NMT_DYNAMIC_SHARED(parts, float);
  const int columns = width / n, threads = static_cast<int>(blockDim.x);
  const int thread = static_cast<int>(threadIdx.x);
  const int fitting = threads / columns < max_shares ? threads / columns : max_shares;
  const int shares = fitting > 1 ? fitting : 1;
  const int share = shares > 1 ? thread / columns : 0;
  const int first = shares > 1 ? thread % columns : thread;
  for (int column = first; column < columns && share < shares; column += threads) {
    const int j = column * n;
    Floats<n> query[tile], sum[tile]{}, vector{};
    if constexpr (slope) vector = load<n>(v + j);
#pragma unroll
    for (int i = 0; i < tile; ++i) {
      if constexpr (slope) query[i] = i < count ? load<n>(x[i] + j) : Floats<n>{};
    }
    const Y* row_values = y[share] + j;
#pragma unroll 4
    for (int s = share; s < length; s += shares, row_values += shares * y.stride) {
      const Floats<n> value = read_all<n>(row_values);
#pragma unroll
      for (int i = 0; i < tile; ++i) {
        if (i >= count) break;
        const float weight = w[i][s];
#pragma unroll
        for (int e = 0; e < n; ++e) {
          if constexpr (slope) {
            const float t = math::tanh(query[i][e] + value[e]);
            sum[i][e] += weight * (1.0f - t * t);
          } else {
            sum[i][e] += weight * value[e];
          }
        }
      }
    }
#pragma unroll
    for (int i = 0; i < tile; ++i) {
      if constexpr (slope)
        for (int e = 0; e < n; ++e) sum[i][e] *= vector[e];
      if (i >= count) continue;
      store<n>(shares > 1 ? parts + (i * shares + share) * width + j : to[i] + j, sum[i]);
      if (shares == 1 && rounded.data) assign_all<n>(rounded[i] + j, sum[i]);
    }
  }
  if (shares == 1) return;
  __syncthreads();
  for (int index = thread; index < width * count; index += threads) {
    const int i = index / width, j = index % width;
    float total = 0;
    for (int p = 0; p < shares; ++p) total += parts[(i * shares + p) * width + j];
    to[i][j] = total;
    if (rounded.data) assign(rounded[i][j], total);
  }
}

/// body(i) for every step of the block, called by a whole warp.
template <class Body>
__device__ __forceinline__ void each_step(int count, Body body) {
  for (int i = static_cast<int>(threadIdx.x / warp_size); i < count;
       i += static_cast<int>(blockDim.x / warp_size))
    body(i);
}

__device__ __forceinline__ float dot_scale(std::int64_t space) {
  return 1.0f / sqrtf(static_cast<float>(space));
}

// Blocks per multiprocessor with one step, so that 128 sentences with 8 heads run at once on 132
// multiprocessors; with several steps one. More would spill registers.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr int single_step_blocks = 1;
#else
constexpr int single_step_blocks = 2;
#endif

template <bool additive, int tile, int n, class Y>
__global__ void __launch_bounds__(max_threads, tile == 1 ? single_step_blocks : 1)
    forward_kernel(Attention a, std::int64_t target_steps, std::int64_t rows,
                   const std::int32_t* sentence, const float* query, float* weights, float* context,
                   Bfloat16* rounded) {
  const TilePosition<tile> position(target_steps, rows);
  const std::int64_t b = sentence ? sentence[position.row] : position.row;
  const int length = a.lengths[b], steps = static_cast<int>(a.steps);
  const int space = static_cast<int>(a.space / a.heads),
            width = static_cast<int>(a.width / a.heads);
  const Rows<float> w = position.steps(weights, a.heads, a.steps);
  each_score<additive, tile, n, Y>(
      position.count, length, space, position.steps(query, a.heads, space),
      positions(a, of_type<Y>(a.keys, a.keys_rounded), b, position.head, space),
      a.v + position.head * space, additive ? 1.0f : dot_scale(space), w);
  __syncthreads();
  each_step(position.count, [&](int i) {
    const int lane = static_cast<int>(threadIdx.x) % warp;
    float largest = Max::none<float>(), sum = 0;
    for (int s = lane; s < length; s += warp) largest = Max::join(largest, w[i][s]);
    largest = warp_max(largest);
    for (int s = lane; s < length; s += warp) sum += w[i][s] = math::exp(w[i][s] - largest);
    sum = warp_sum(sum);
    for (int s = lane; s < steps; s += warp) w[i][s] = s < length ? w[i][s] / sum : 0.0f;
  });
  __syncthreads();
  each_sum<false, tile, n, Y>(
      position.count, length, width, {w.data, w.stride},
      positions(a, of_type<Y>(a.memory, a.memory_rounded), b, position.head, width), {}, nullptr,
      position.steps(context, a.heads, width), position.steps(rounded, a.heads, width));
}

/// A warp adds the derivative of the cost of a row by its scores, softmax s: weight (sum of the
/// targets * s - target).
__device__ __forceinline__ void add_link_gradient(const AttentionLinks& links, std::int64_t row,
                                                  int length, float scale, const float* weights,
                                                  float* dscores) {
  const int begin = links.offsets[row], end = links.offsets[row + 1];
  if (begin == end) return;
  const int lane = static_cast<int>(threadIdx.x) % warp;
  const float weight = scale * links.weight, target = weight / static_cast<float>(end - begin);
  for (int s = lane; s < length; s += warp) dscores[s] += weight * weights[s];
  __syncwarp();
  for (int i = begin + lane; i < end; i += warp) dscores[links.sources[i]] -= target;
}

template <bool additive, int tile, int n, class Y>
__global__ void __launch_bounds__(max_threads, tile == 1 ? single_step_blocks : 1)
    backward_queries_kernel(Attention a, std::int64_t target_steps, const float* query,
                            const float* weights, const float* dcontext, float* dscores,
                            float* dquery, Bfloat16* rounded) {
  const TilePosition<tile> position(target_steps, a.sentences);
  const std::int64_t b = position.row;
  const int length = a.lengths[b], steps = static_cast<int>(a.steps);
  const int space = static_cast<int>(a.space / a.heads),
            width = static_cast<int>(a.width / a.heads);
  const Rows<const float> w = position.steps(weights, a.heads, a.steps);
  const Rows<float> d = position.steps(dscores, a.heads, a.steps);
  each_score<false, tile, n, Y>(
      position.count, length, width, position.steps(dcontext, a.heads, width),
      positions(a, of_type<Y>(a.memory, a.memory_rounded), b, position.head, width), nullptr, 1.0f,
      d);
  __syncthreads();
  each_step(position.count, [&](int i) {
    const int lane = static_cast<int>(threadIdx.x) % warp;
    const float scale = additive ? 1.0f : dot_scale(space);
    float mean = 0;
    for (int s = lane; s < length; s += warp) mean += w[i][s] * d[i][s];
    mean = warp_sum(mean);
    for (int s = lane; s < steps; s += warp)
      d[i][s] = s < length ? scale * w[i][s] * (d[i][s] - mean) : 0.0f;
    if (a.links.offsets && position.head == a.links.head)
      add_link_gradient(a.links, (position.first + i) * position.rows + position.row, length, scale,
                        w[i], d[i]);
  });
  __syncthreads();
  each_sum<additive, tile, n, Y>(
      position.count, length, space, {d.data, d.stride},
      positions(a, of_type<Y>(a.keys, a.keys_rounded), b, position.head, space),
      position.steps(query, a.heads, space), a.v + position.head * space,
      position.steps(dquery, a.heads, space), position.steps(rounded, a.heads, space));
}

// Keys of a block, in tiles held in a thread's registers.
constexpr std::int64_t keys_of_block = 16;
constexpr int keys_of_tile = 4;
constexpr unsigned key_threads = 128;

// Additive scores: a thread computes a channel of some keys of a sentence over all target steps.
template <class Y>
__global__ void __launch_bounds__(key_threads)
    backward_keys_kernel(Attention a, std::int64_t target_steps, const float* query,
                         const float* dscores, float* dkeys, float* dv_parts) {
  const std::int64_t column = std::int64_t{blockIdx.y} * key_threads + threadIdx.x;
  if (column >= a.space) return;
  const std::int64_t parts = divide_up(a.steps, keys_of_block), b = blockIdx.x / parts;
  const std::int64_t begin = blockIdx.x % parts * keys_of_block,
                     head = column / (a.space / a.heads);
  const std::int64_t length = a.lengths[b],
                     end = begin + keys_of_block < length ? begin + keys_of_block : length;
  const float v = a.v[column];
  float dv = 0;
  for (std::int64_t first = begin; first < end; first += keys_of_tile) {
    float key[keys_of_tile], dkey[keys_of_tile] = {};
#pragma unroll
    for (int i = 0; i < keys_of_tile; ++i)
      key[i] =
          first + i < end
              ? as_float(of_type<Y>(
                    a.keys, a.keys_rounded)[((first + i) * a.sentences + b) * a.space + column])
              : 0.0f;
    for (std::int64_t t = 0; t < target_steps; ++t) {
      const std::int64_t row = t * a.sentences + b;
      const float q = query[row * a.space + column];
      const float* const d = dscores + (row * a.heads + head) * a.steps + first;
#pragma unroll
      for (int i = 0; i < keys_of_tile; ++i) {
        const float score = first + i < end ? d[i] : 0.0f, y = math::tanh(q + key[i]);
        dkey[i] += score * (1.0f - y * y);
        dv += score * y;
      }
    }
#pragma unroll
    for (int i = 0; i < keys_of_tile; ++i)
      if (first + i < end) dkeys[((first + i) * a.sentences + b) * a.space + column] += v * dkey[i];
  }
  dv_parts[blockIdx.x * a.space + column] = dv;
}

std::int64_t key_blocks(const Attention& a) {
  return a.sentences * divide_up(a.steps, keys_of_block);
}

/// A variant of a kernel: the kind of score, the steps of a block, the elements of an access (1 or
/// 4), the type of keys and memory.
template <bool additive_, int tile_, int n_, class Y_>
struct Variant {
  static constexpr bool additive = additive_;
  static constexpr int tile = tile_, n = n_;
  using Y = Y_;
};

/// Launches kernel_of(Variant) with (a, target_steps, arguments...).
template <class KernelOf, class... Arguments>
void launch_tiles(const Cuda& cuda, const Attention& a, std::int64_t target_steps,
                  std::int64_t rows, bool fours, KernelOf kernel_of,
                  const Arguments&... arguments) {
  const std::int64_t max_width = std::max(a.space, a.width) / a.heads;
  const unsigned threads = std::max(128u, threads_for(max_width, max_threads));
  const auto start = [&](auto variant) {
    const dim3 grid(static_cast<unsigned>(rows * divide_up(target_steps, variant.tile)),
                    static_cast<unsigned>(a.heads));
    const std::size_t shared =
        sizeof(float) * threads * static_cast<std::size_t>(variant.tile * variant.n);
    launch(kernel_of(variant), grid, threads, shared, cuda, a, target_steps, arguments...);
  };
  const auto start_kind = [&](auto kind, auto number) {
    constexpr bool additive = decltype(kind)::value;
    using Y = decltype(number);
    if (target_steps == 1)
      fours ? start(Variant<additive, 1, 4, Y>()) : start(Variant<additive, 1, 1, Y>());
    else
      fours ? start(Variant<additive, steps_of_tile, 4, Y>())
            : start(Variant<additive, steps_of_tile, 1, Y>());
  };
  const auto start_number = [&](auto number) {
    a.kind == AttentionKind::additive ? start_kind(std::true_type(), number)
                                      : start_kind(std::false_type(), number);
  };
  a.keys_rounded ? start_number(Bfloat16()) : start_number(float());
}

template <class... Pointers>
bool all_by_fours(const Attention& a, const Pointers*... pointers) {
  return by_fours(a.space / a.heads, a.keys, a.keys_rounded, a.v, pointers...) &&
         by_fours(a.width / a.heads, a.memory, a.memory_rounded);
}

}  // namespace

void attention_forward(const Cuda& cuda, const Attention& a, std::int64_t target_steps,
                       std::int64_t rows, const std::int32_t* sentence, const float* query,
                       float* weights, float* context) {
  nmt::cuda::attention_forward(cuda, a, target_steps, rows, sentence, query, weights, context,
                               nullptr);
}

std::int64_t attention_scratch(const Cuda&, const Attention& a, std::int64_t target_steps) {
  return target_steps * a.sentences * a.heads * a.steps + attention_sources_scratch(a);
}

void attention_backward(const Cuda& cuda, const Attention& a, std::int64_t target_steps,
                        const float* query, const float* weights, const AttentionGradient& g) {
  float* const dscores = g.scratch;
  AttentionGradient sources = g;
  sources.scratch += target_steps * a.sentences * a.heads * a.steps;
  attention_backward_queries(cuda, a, target_steps, query, weights, g.dcontext, dscores, g.dquery);
  attention_backward_sources(cuda, a, target_steps, query, weights, dscores, sources);
}

void attention_link_cost(const Cuda& cuda, const AttentionLinks& links, std::int64_t rows,
                         std::int64_t heads, std::int64_t steps, const float* weights,
                         double* scratch, double* sum) {
  each(cuda, rows, [=] __device__(std::int64_t row) {
    scratch[row] = link_cost_of_row(links, row, weights + (row * heads + links.head) * steps);
  });
  add_sum(cuda, rows, scratch, sum);
}

}  // namespace nmt::kernels

namespace nmt::cuda {

using namespace nmt::kernels;

void attention_forward(const Cuda& cuda, const Attention& a, std::int64_t target_steps,
                       std::int64_t rows, const std::int32_t* sentence, const float* query,
                       float* weights, float* context, Bfloat16* rounded) {
  launch_tiles(
      cuda, a, target_steps, rows, all_by_fours(a, query, context, rounded),
      [](auto variant) {
        return forward_kernel<variant.additive, variant.tile, variant.n,
                              typename decltype(variant)::Y>;
      },
      rows, sentence, query, weights, context, rounded);
}

void attention_backward_queries(const Cuda& cuda, const Attention& a, std::int64_t target_steps,
                                const float* query, const float* weights, const float* dcontext,
                                float* dscores, float* dquery, Bfloat16* dquery_rounded) {
  launch_tiles(
      cuda, a, target_steps, a.sentences, all_by_fours(a, query, dcontext, dquery, dquery_rounded),
      [](auto variant) {
        return backward_queries_kernel<variant.additive, variant.tile, variant.n,
                                       typename decltype(variant)::Y>;
      },
      query, weights, dcontext, dscores, dquery, dquery_rounded);
}

std::int64_t attention_sources_scratch(const Attention& a) {
  return a.kind == AttentionKind::additive ? key_blocks(a) * a.space : 0;
}

void attention_backward_sources(const Cuda& cuda, const Attention& a, std::int64_t target_steps,
                                const float* query, const float* weights, const float* dscores,
                                const AttentionGradient& g, bool writes_memory) {
  // to[s,b,head,:] += sum over t of w[t,b,head,s] x[t,b,head,:], one product for all sentences and
  // heads.
  const auto add_weighted = [&](const float* w, const float* x, std::int64_t wide, float* to,
                                float beta) {
    const std::int64_t n = wide / a.heads, count = a.sentences * a.heads;
    multiply(cuda, {.m = a.steps,
                    .n = n,
                    .k = target_steps,
                    .a = {.transpose = true, .f32 = w, .ld = count * a.steps, .stride = a.steps},
                    .b = {.f32 = x, .ld = a.sentences * wide, .stride = n},
                    .beta = beta,
                    .c = to,
                    .ldc = a.sentences * wide,
                    .c_stride = n,
                    .count = count});
  };
  add_weighted(weights, g.dcontext, a.width, g.dmemory, writes_memory ? 0.0f : 1.0f);
  if (a.kind == AttentionKind::dot) return add_weighted(dscores, query, a.space, g.dkeys, 1.0f);
  const dim3 grid(static_cast<unsigned>(key_blocks(a)),
                  static_cast<unsigned>(divide_up(a.space, key_threads)));
  const std::int64_t space = a.space;
  float* const parts = g.scratch;
  launch(a.keys_rounded ? backward_keys_kernel<Bfloat16> : backward_keys_kernel<float>, grid,
         key_threads, 0, cuda, a, target_steps, query, dscores, g.dkeys, parts);
  add_columns(
      cuda, key_blocks(a), space,
      [=] __device__(std::int64_t r, std::int64_t i) { return parts[r * space + i]; }, g.dv);
}

}  // namespace nmt::cuda
