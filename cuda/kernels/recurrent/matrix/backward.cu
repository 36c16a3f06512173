#include "cuda/kernels/recurrent/matrix/scan.h"
#include "cuda/kernels/reduce.h"

namespace nmt::cuda {
namespace {

using namespace nmt::units;
using kernels::matrix_stride;
using kernels::MatrixGradient;

// The gradient that the masked steps after a chunk add to its last output. Where all steps of the
// chunk are masked, an earlier chunk adds that gradient.
template <class U>
__device__ float passed_gradient(const Row<U>& row, const float* dh) {
  const ScanArguments& s = row.s;
  std::int64_t live = row.begin;
  while (live < row.end && !row.is_live(live)) ++live;
  if (live == row.end && row.chunk > 0) return 0.0f;
  std::int64_t i = row.end;
  while (i < s.a.steps && !row.is_live(i)) ++i;
  float sum = 0.0f;
  while (--i >= row.end) sum += dh[s.row(i, row.b) * s.a.width + row.channel];
  return sum;
}

// A tile of a chunk. `ends`: the gradient of the states before the chunk, from one of 0 after it;
// otherwise all gradients of the chunk. All 32 lanes take part in the sums over the channels;
// unused ones add 0.
template <class U, bool ends>
__device__ void tile_backward(Row<U>& row, const MatrixGradient& g,
                              const MatrixScanScratch& scratch, float* shared, float* segment) {
  const ScanArguments& s = row.s;
  const int k = row.k;
  const std::int64_t width = s.a.width;
  const bool first = threadIdx.x == 0, is_last = row.end == s.a.steps;
  float* const dstate = shared + threadIdx.x;                 // [K]
  float* const drate = shared + k * warp_size + threadIdx.x;  // [K], of units with rows
  segment += threadIdx.x;
  float dvector[at_least_one(U::vectors)] = {};
  float carry = row.used && !is_last ? passed_gradient(row, g.dh) : 0.0f;
  const float* const after_chunk = scratch.carries + s.between(row.chunk, row.b, row.channel);
  for (int i = 0; i < k; ++i) {
    dstate[i * warp_size] = ends || is_last || !row.used ? 0.0f : after_chunk[i * width];
    if constexpr (U::rows > 0) drate[i * warp_size] = 0.0f;
  }
  for (std::int64_t n = (row.end - 1) / matrix_stride; n >= row.begin / matrix_stride; --n) {
    const std::int64_t begin = n * matrix_stride;
    const int count = static_cast<int>(
        row.end - begin < matrix_stride ? row.end - begin : std::int64_t{matrix_stride});
    const float* const kept = row.checkpoint(n);
    for (int i = 0; i < k; ++i) segment[i * warp_size] = row.used ? kept[i * width] : 0.0f;
    for (int j = 0; j < count; ++j) {
      const float* const before = segment + j * k * warp_size;
      float* const after = segment + (j + 1) * k * warp_size;
      if (row.is_live(begin + j)) {
        row.open(begin + j);
        row.advance(before, U::write(row.step, row.read(before)), after);
      } else {
        for (int i = 0; i < k; ++i) after[i * warp_size] = before[i * warp_size];
      }
    }
    for (int j = count - 1; j >= 0; --j) {
      const std::int64_t t = s.time(begin + j), step_row = t * s.a.batch + row.b;
      if (row.used) carry += g.dh[step_row * width + row.channel];
      ChannelStep<float, U> d{};
      if (row.is_live(begin + j)) {
        const float* const before = segment + j * k * warp_size;
        const float* const after = segment + (j + 1) * k * warp_size;
        const HeadOutput<float> dhead =
            head_at<U>(scratch.heads + (row.tile * s.a.steps + t) * s.output, k);
        row.open(begin + j);
        float y = 0.0f, dy, dw = 0.0f, dp, dpace = 0.0f;
        for (int i = 0; i < k; ++i) y += row.head.query[i] * after[i * warp_size];
        const float p = row.read(before), w = U::write(row.step, p);
        U::output_backward(row.step, y, carry, d, dy);
        for (int i = 0; i < k; ++i) {
          const float key = row.head.key[i], was = before[i * warp_size], decay = row.decay(i),
                      ds = dstate[i * warp_size] + dy * row.head.query[i];
          dw += ds * key;
          dstate[i * warp_size] = ds * decay;
          if constexpr (ends) continue;
          const float dquery = warp_sum(dy * after[i * warp_size]), dkey = warp_sum(ds * w);
          float ddecay = 0.0f;
          if constexpr (U::rows > 0) {
            const float rate = U::rate(row.trained(i)), slope = ds * was * decay;
            dpace += slope * rate;
            drate[i * warp_size] += slope * row.pace;
          } else {
            ddecay = warp_sum(ds * was);
          }
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
            dstate[i * warp_size] += dp * row.head.key[i];
            if constexpr (ends) continue;
            const float dkey = warp_sum(dp * before[i * warp_size]);
            if (first) dhead.key[i] += dkey;
          }
        if constexpr (!ends)
          for (int n_extra = 0; n_extra < U::extras; ++n_extra) {
            const float sum = warp_sum(row.used ? d.extra[n_extra] : 0.0f);
            if (first) dhead.extra[n_extra] = sum;
          }
        for (int v = 0; v < U::vectors; ++v) dvector[v] += d.v[v];
        carry = 0.0f;
      }
      if (row.used && !ends)
        for (int p = 0; p < U::inputs; ++p)
          g.dx[(step_row * U::inputs + p) * width + row.channel] = d.x[p];
    }
  }
  if (!row.used) return;
  if constexpr (ends) {
    float* const to = scratch.carries + s.between(row.chunk - 1, row.b, row.channel);
    for (int i = 0; i < k; ++i) to[i * width] = dstate[i * warp_size];
  } else {
    if (row.chunk == 0 && g.dh_before) g.dh_before[row.b * width + row.channel] = carry;
    if (row.chunk == 0 && g.dmemory_before)
      for (int i = 0; i < k; ++i)
        g.dmemory_before[row.b * s.memory_width + i * width + row.channel] = dstate[i * warp_size];
    float* const sums =
        scratch.sums + (row.chunk * s.a.batch + row.b) * scratch.sums_stride + row.channel;
    for (int v = 0; v < U::vectors; ++v) sums[v * width] = dvector[v];
    if constexpr (U::rows > 0)
      for (int i = 0; i < k; ++i) {
        const float trained = row.trained(i);
        sums[(U::vectors + i) * width] =
            drate[i * warp_size] * U::rate_slope(trained, U::rate(trained));
      }
  }
}

template <class U>
__device__ float* segment_of(const ScanArguments& s, const MatrixScanScratch& scratch,
                             std::int64_t n) {
  return scratch.segments + n * (matrix_stride + 1) * s.a.state_width * warp_size;
}

// Of all chunks but the first.
template <class U>
__global__ void ends_backward_kernel(ScanArguments s, MatrixGradient g, MatrixScanScratch scratch) {
  NMT_DYNAMIC_SHARED(shared, float);
  Row<U> row(s, blockIdx.x + s.chains * s.tiles);
  if (row.used)
    tile_backward<U, true>(row, g, scratch, shared, segment_of<U>(s, scratch, blockIdx.x));
}

template <class U>
__global__ void scan_backward_kernel(ScanArguments s, MatrixGradient g, MatrixScanScratch scratch) {
  NMT_DYNAMIC_SHARED(shared, float);
  Row<U> row(s, blockIdx.x);
  tile_backward<U, false>(row, g, scratch, shared, segment_of<U>(s, scratch, blockIdx.x));
}

template <class U>
struct Backward {
  static void run(const Cuda& cuda, const ScanArguments& s, const MatrixGradient& g,
                  const MatrixScanScratch& scratch) {
    const std::int64_t tiles = s.chains * s.tiles;
    const std::size_t shared =
        2 * sizeof(float) * warp_size * static_cast<std::size_t>(s.a.state_width);
    if (s.chunks > 1) {
      launch(ends_backward_kernel<U>, static_cast<unsigned>((s.chunks - 1) * tiles), warp_size,
             shared, cuda, s, g, scratch);
      join_gradients(cuda, s, scratch.carries);
    }
    launch(scan_backward_kernel<U>, static_cast<unsigned>(s.chunks * tiles), warp_size, shared,
           cuda, s, g, scratch);
  }
};

}  // namespace

void scan_backward(const Cuda& cuda, const ScanArguments& s, const MatrixGradient& g,
                   const MatrixScanScratch& scratch) {
  entry_of<Backward>(s.a.unit)(cuda, s, g, scratch);
}

}  // namespace nmt::cuda
