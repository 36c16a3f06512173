#include "cuda/kernels/decoding/key.h"
#include "cuda/kernels/decoding/part_lists.h"
#include "cuda/kernels/running_sum.h"
#include "kernels/decoding/top_k.h"
#include "kernels/softmax_loss.h"

namespace nmt::kernels {
namespace {

using namespace nmt::cuda;

struct Skipped {
  std::int32_t columns[max_top_k_skip];
  int count = 0;
  __device__ __forceinline__ bool has(std::int64_t column) const {
    bool found = false;
#pragma unroll  // the columns are kernel arguments, which a variable index would copy to the stack
    for (std::size_t i = 0; i < max_top_k_skip; ++i)
      found = found || (static_cast<int>(i) < count && columns[i] == column);
    return found;
  }
};

// body(i, n elements from x[i] on) for a thread's elements of x[begin, end).
template <int n, class Body>
__device__ __forceinline__ void each_part(const float* x, std::int64_t begin, std::int64_t end,
                                          const Body& body) {
  for (std::int64_t i = begin + n * threadIdx.x; i < end; i += n * blockDim.x)
    body(i, load<n>(x + i));
}

// The greatest key below `bound` among a thread's elements of x[begin, end).
template <int n>
__device__ __forceinline__ Key greatest(const float* x, std::int64_t begin, std::int64_t end,
                                        const Skipped& skipped, Key bound) {
  Key best = 0;
  each_part<n>(x, begin, end, [&](std::int64_t i, const Floats<n>& values) {
#pragma unroll
    for (int e = 0; e < n; ++e) {
      const float value = values[e];
      if (value == -std::numeric_limits<float>::infinity()) continue;
      const Key key = key_of(value, i + e);
      if (key > best && key < bound && (value != value || !skipped.has(i + e))) best = key;
    }
  });
  return best;
}

// One block per row. Every thread holds the greatest of its elements that are not taken yet; the
// thread whose element is taken searches for its next one.
template <int n>
__global__ void top_k_kernel(std::int64_t width, const float* rows, int k, Skipped skipped,
                             float* values, std::int32_t* columns) {
  const float* const x = rows + blockIdx.x * width;
  const std::int64_t offset = std::int64_t{blockIdx.x} * k;
  Key own = greatest<n>(x, 0, width, skipped, ~Key{0});
  bool done = false;
  for (int rank = 0; rank < k; ++rank) {
    const Key best = done ? 0 : block_reduce<MaxKey>(own);  // `done` is the same in all threads
    const bool is_found = best != 0;
    const float value = is_found ? x[index_of(best)] : -std::numeric_limits<float>::infinity();
    if (threadIdx.x == 0) {
      values[offset + rank] = value;
      columns[offset + rank] = is_found ? index_of(best) : -1;
    }
    done = !is_found || value != value;
    if (own == best && !done && rank + 1 < k) own = greatest<n>(x, 0, width, skipped, best);
  }
}

// One block per part of a row.
template <int n>
__global__ void best_of_parts_kernel(std::int64_t width, std::int64_t columns, std::int64_t parts,
                                     const float* rows, int k, Skipped skipped, std::uint64_t* keys,
                                     float* sums) {
  const std::int64_t row = blockIdx.x / parts, begin = blockIdx.x % parts * columns,
                     end = begin + columns < width ? begin + columns : width;
  const float* const x = rows + row * width;
  RunningSum running;
  each_part<n>(x, begin, end,
               [&](std::int64_t, const Floats<n>& values) { running.add_all(values); });
  Key own = k > 0 ? greatest<n>(x, begin, end, skipped, ~Key{0}) : 0;
  running.join();
  if (threadIdx.x == 0) {
    sums[2 * std::int64_t{blockIdx.x}] = running.maximum;
    sums[2 * std::int64_t{blockIdx.x} + 1] = running.sum;
  }
  for (int rank = 0; rank < k; ++rank) {
    const Key best = block_reduce<MaxKey>(own);
    if (threadIdx.x == 0) keys[std::int64_t{blockIdx.x} * k + rank] = best;
    if (own == best && best != 0 && rank + 1 < k) own = greatest<n>(x, begin, end, skipped, best);
  }
}

// One warp per row.
__global__ void join_parts_kernel(std::int64_t rows, PartLists lists, float* values,
                                  std::int32_t* columns, float* log_normalizers) {
  const std::int64_t row = grid_index() / warp_size;
  if (row < rows) join_row(lists, row, values, columns, log_normalizers);
}

Skipped left_out(std::span<const std::int32_t> skip) {
  NMT_CHECK(skip.size() <= max_top_k_skip,
            "top_k: {} columns to leave out, at most {} are possible", skip.size(), max_top_k_skip);
  Skipped skipped{};
  for (const std::int32_t column : skip) skipped.columns[skipped.count++] = column;
  return skipped;
}

}  // namespace

void best_of_parts(const Cuda& cuda, std::int64_t rows, std::int64_t width, const float* x, int k,
                   std::span<const std::int32_t> skip, std::uint64_t* keys, float* sums) {
  const std::int64_t columns = part_columns(width), parts = row_parts(width);
  launch(by_fours(width, x) ? best_of_parts_kernel<4> : best_of_parts_kernel<1>,
         static_cast<unsigned>(rows * parts), threads_for(divide_up(std::min(width, columns), 4)),
         0, cuda, width, columns, parts, x, k, left_out(skip), keys, sums);
}

// By the same parts as a search, so that forced scores have the same bits.
void log_sum_exp(const Cuda& cuda, std::int64_t rows, std::int64_t vocabulary, const float* logits,
                 float* out) {
  const std::int64_t parts = row_parts(vocabulary);
  float* const sums = workspace<float>(cuda, 2 * rows * parts);
  best_of_parts(cuda, rows, vocabulary, logits, 0, {}, nullptr, sums);
  join_parts(cuda, rows, {parts, 0, nullptr, sums}, nullptr, nullptr, out);
}

void join_parts(const Cuda& cuda, std::int64_t rows, const PartLists& lists, float* values,
                std::int32_t* columns, float* log_normalizers) {
  constexpr unsigned warps = 4;
  launch(join_parts_kernel, static_cast<unsigned>(divide_up(rows, warps)), warps * warp_size, 0,
         cuda, rows, lists, values, columns, log_normalizers);
}

void top_k(const Cuda& cuda, std::int64_t rows, std::int64_t width, const float* x, int k,
           std::span<const std::int32_t> skip, float* values, std::int32_t* columns) {
  NMT_CHECK(k >= 1, "top_k: k is {}, at least 1 is needed", k);
  const bool fours = by_fours(width, x);
  launch(fours ? top_k_kernel<4> : top_k_kernel<1>, static_cast<unsigned>(rows),
         threads_for(fours ? width / 4 : width, 512), 0, cuda, width, x, k, left_out(skip), values,
         columns);
}

}  // namespace nmt::kernels
