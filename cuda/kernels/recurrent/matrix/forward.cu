#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/recurrent/matrix/scan.h"

namespace nmt::cuda {
namespace {

using namespace nmt::units;

// A chunk does not know the output before it, so those of masked steps at its start are left to
// passed_outputs_kernel().
template <class U>
__global__ void scan_kernel(ScanArguments s) {
  NMT_DYNAMIC_SHARED(states, float);
  Row<U> row(s, blockIdx.x);
  if (!row.used) return;
  const std::int64_t width = s.a.width;
  float* const state = states + threadIdx.x;
  const float* const before = row.chunk == 0
                                  ? s.a.memory_before + row.b * s.memory_width + row.channel
                                  : s.states + s.between(row.chunk - 1, row.b, row.channel);
  for (int i = 0; i < row.k; ++i) state[i * warp_size] = before[i * width];
  bool is_known = row.chunk == 0;
  float h = is_known ? s.a.h_before[row.b * width + row.channel] : 0.0f;
  for (std::int64_t i = row.begin; i < row.end; ++i) {
    if (s.a.checkpoints && i % kernels::matrix_stride == 0) {
      float* const to = row.checkpoint(i / kernels::matrix_stride);
      for (int n = 0; n < row.k; ++n) to[n * width] = state[n * warp_size];
    }
    if (row.is_live(i)) {
      row.open(i);
      const float w = U::write(row.step, row.read(state));
      h = U::output(row.step, row.advance(state, w, state));
      is_known = true;
    }
    if (is_known) s.a.h[s.row(i, row.b) * width + row.channel] = h;
  }
  if (row.end < s.a.steps) return;
  float* const after = s.a.memory + row.b * s.memory_width + row.channel;
  for (int i = 0; i < row.k; ++i) after[i * width] = state[i * warp_size];
}

// The outputs of masked steps at the start of a chunk: that of the last step before them that is
// not masked, or the first one.
__global__ void passed_outputs_kernel(ScanArguments s) {
  const std::int64_t width = s.a.width, channels = s.a.batch * width;
  for (std::int64_t n = grid_index(); n < (s.chunks - 1) * channels; n += grid_stride()) {
    const std::int64_t chunk = n / channels + 1, b = n % channels / width, channel = n % width,
                       begin = chunk * s.length, end = s.end(chunk);
    if (s.is_live(s.row(begin, b))) continue;
    std::int64_t from = begin - 1;
    while (from >= 0 && !s.is_live(s.row(from, b))) --from;
    const float h = from < 0 ? s.a.h_before[n % channels] : s.a.h[s.row(from, b) * width + channel];
    for (std::int64_t i = begin; i < end && !s.is_live(s.row(i, b)); ++i)
      s.a.h[s.row(i, b) * width + channel] = h;
  }
}

template <class U>
struct Forward {
  static void run(const Cuda& cuda, const ScanArguments& s) {
    launch(scan_kernel<U>, static_cast<unsigned>(s.chunks * s.chains * s.tiles), warp_size,
           sizeof(float) * warp_size * static_cast<std::size_t>(s.a.state_width), cuda, s);
  }
};

}  // namespace

void scan_forward(const Cuda& cuda, const ScanArguments& s) {
  entry_of<Forward>(s.a.unit)(cuda, s);
  if (s.chunks > 1 && s.a.mask)
    launch(passed_outputs_kernel, blocks_for(cuda, (s.chunks - 1) * s.a.batch * s.a.width, 128),
           128, 0, cuda, s);
}

}  // namespace nmt::cuda
