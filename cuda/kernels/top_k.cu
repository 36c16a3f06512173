#include "cuda/kernels/key.h"
#include "kernels/decoding/top_k.h"

namespace nmt::kernels {
namespace {

using namespace nmt::cuda;

struct Skipped {
  std::int32_t columns[max_top_k_skip];
  int count = 0;
  __device__ __forceinline__ bool has(std::int64_t column) const {
    for (int i = 0; i < count; ++i)
      if (columns[i] == column) return true;
    return false;
  }
};

// The greatest key below `bound` among a thread's elements.
__device__ Key greatest(const float* x, std::int64_t width, const Skipped& skipped, Key bound) {
  Key best = 0;
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    const float value = x[i];
    if (value == -std::numeric_limits<float>::infinity()) continue;
    const Key key = key_of(value, i);
    if (key > best && key < bound && (value != value || !skipped.has(i))) best = key;
  }
  return best;
}

// One block per row. Every thread holds the greatest of its elements that are not taken yet; the
// thread whose element is taken searches for its next one.
__global__ void top_k_kernel(std::int64_t width, const float* rows, int k, Skipped skipped,
                             float* values, std::int32_t* columns) {
  const float* const x = rows + blockIdx.x * width;
  const std::int64_t at = std::int64_t{blockIdx.x} * k;
  Key own = greatest(x, width, skipped, ~Key{0});
  bool done = false;
  for (int place = 0; place < k; ++place) {
    const Key best = done ? 0 : block_reduce<MaxKey>(own);  // `done` is the same in all threads
    const bool there = best != 0;
    const float value = there ? x[place_of(best)] : -std::numeric_limits<float>::infinity();
    if (threadIdx.x == 0) {
      values[at + place] = value;
      columns[at + place] = there ? place_of(best) : -1;
    }
    done = !there || value != value;
    if (own == best && !done && place + 1 < k) own = greatest(x, width, skipped, best);
  }
}

}  // namespace

void top_k(const Cuda& cuda, std::int64_t rows, std::int64_t width, const float* x, int k,
           std::span<const std::int32_t> skip, float* values, std::int32_t* columns) {
  NMT_CHECK(k >= 1, "top_k: k is {}, at least 1 is needed", k);
  NMT_CHECK(skip.size() <= max_top_k_skip,
            "top_k: {} columns to leave out, at most {} are possible", skip.size(), max_top_k_skip);
  Skipped skipped{};
  for (const std::int32_t column : skip) skipped.columns[skipped.count++] = column;
  launch(top_k_kernel, static_cast<unsigned>(rows), threads_for(width, 512), 0, cuda, width, x, k,
         skipped, values, columns);
}

}  // namespace nmt::kernels
