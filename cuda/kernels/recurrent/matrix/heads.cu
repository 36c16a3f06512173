#include "cuda/kernels/elementwise.h"
#include "cuda/kernels/recurrent/matrix/scan.h"

namespace nmt::cuda {
namespace {

using namespace nmt::units;
using kernels::MatrixGradient;

// Whether the steps of a head depend on each other only through its channels' states.
template <class U>
constexpr bool forgets = U::memory_vectors + U::memory_scalars == 0;

// Threads that compute the heads' vectors: one for all steps of a head of a sentence, or, if the
// head remembers nothing, one for each step.
template <class U>
std::int64_t heads_at_once(const ScanArguments& s) {
  return s.chains * (forgets<U> ? s.a.steps : 1);
}

template <class U>
__global__ void prepare_kernel(ScanArguments s) {
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

// The gradients of the projections of a head, from the sums of its tiles; threads as for
// prepare_kernel().
template <class U>
__global__ void prepare_backward_kernel(ScanArguments s, MatrixGradient g,
                                        MatrixScanScratch scratch) {
  constexpr int max_memory = at_least_one(head_memory<U>(kernels::max_state_width));
  const int k = s.a.state_width, summed = s.output - s.memory;
  const std::int64_t chains = s.a.batch * s.a.heads, at_once = forgets<U> ? s.a.steps : 1;
  for (std::int64_t n = grid_index(); n < chains * at_once; n += grid_stride()) {
    const std::int64_t chain = n / at_once, b = chain / s.a.heads, head = chain % s.a.heads;
    const std::int64_t last = forgets<U> ? n % at_once : s.a.steps - 1;
    const auto gradients = [&](std::int64_t tile, std::int64_t t) {
      return scratch.heads + ((chain * s.tiles + tile) * s.a.steps + t) * s.output;
    };
    // Indexed by loops over a width known at run time, so in local memory: 520 bytes of stack. A
    // thread has a whole head, so few threads run, and their lines stay in the L1 cache.
    float dmemory[max_memory], dbefore[max_memory] = {};
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
struct Heads {
  static void run(const Cuda& cuda, const ScanArguments& s) {
    launch(prepare_kernel<U>, blocks_for(cuda, heads_at_once<U>(s), warp_size), warp_size, 0, cuda,
           s);
  }
};
template <class U>
struct HeadsBackward {
  static void run(const Cuda& cuda, const ScanArguments& s, const MatrixGradient& g,
                  const MatrixScanScratch& scratch) {
    launch(prepare_backward_kernel<U>, blocks_for(cuda, heads_at_once<U>(s), warp_size), warp_size,
           0, cuda, s, g, scratch);
  }
};

}  // namespace

void prepare_heads(const Cuda& cuda, const ScanArguments& s) {
  entry_of<Heads>(s.a.unit)(cuda, s);
}
void prepare_heads_backward(const Cuda& cuda, const ScanArguments& s, const MatrixGradient& g,
                            const MatrixScanScratch& scratch) {
  entry_of<HeadsBackward>(s.a.unit)(cuda, s, g, scratch);
}

}  // namespace nmt::cuda
