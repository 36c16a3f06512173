#include "cuda/kernels/assign.h"
#include "cuda/kernels/reduce.h"
#include "kernels/optimizer.h"

#include <cmath>
#include <cstring>
#include <vector>

namespace nmt::kernels {
namespace {

using namespace nmt::cuda;

constexpr std::int64_t chunk = 4096;  // elements of one tensor per block
constexpr unsigned threads = 256;

// A tensor in the device's table: its chunks are blocks [first, first + chunks) of the launch.
struct Entry {
  OptimizerSlice slice;
  std::int64_t first;
};
struct Table {
  const Entry* entries = nullptr;
  std::int64_t count = 0;
  std::int64_t blocks = 0;
};

// The slices on the device. They are the same in every update, so they are uploaded once.
Table upload_table(const Cuda& cuda, const OptimizerSlice* slices, std::int64_t count) {
  std::vector<Entry> entries;
  Table table;
  for (std::int64_t s = 0; s < count; ++s) {
    if (slices[s].n == 0) continue;
    Entry entry{};
    entry.slice = slices[s];
    entry.first = table.blocks;
    entries.push_back(entry);
    table.blocks += divide_up(slices[s].n, chunk);
  }
  table.count = static_cast<std::int64_t>(entries.size());
  if (entries.empty()) return table;
  CudaDevice::State& state = state_of(cuda);
  const char* const bytes = reinterpret_cast<const char*>(entries.data());
  const std::size_t size = entries.size() * sizeof(Entry);
  // A larger table moves to other memory.
  if (state.table_contents.size() < size) state.table_contents.clear();
  void* const data = state.table.get(state, size);
  if (state.table_contents.size() != size ||
      std::memcmp(state.table_contents.data(), bytes, size) != 0) {
    // No graph may contain the upload: a capture or comparison is aborted, and the table is
    // uploaded when the work runs again.
    if (state.recording) state.recording->on_memory_change();
    if (!state.recording || !state.recording->is_aborted()) {
      cuda.device->to_device(data, bytes, size);
      state.table_contents.assign(bytes, bytes + size);
    }
  }
  table.entries = static_cast<const Entry*>(data);
  return table;
}

// The entry of a block: the last one with first <= block.
__device__ const Entry& entry_of(const Table& table, std::int64_t block) {
  std::int64_t low = 0, high = table.count - 1;
  while (low < high) {
    const std::int64_t middle = (low + high + 1) / 2;
    if (table.entries[middle].first <= block)
      low = middle;
    else
      high = middle - 1;
  }
  return table.entries[low];
}

// Updates n weights from number i on. All loads are issued before an instruction waits for one.
template <int n, class Rule>
__device__ __forceinline__ void update_some(const OptimizerSlice& slice, const Rule& rule,
                                            std::int64_t i, float factor, bool average) {
  const Floats<n> gradient = load<n>(slice.gradient + i);
  Floats<n> value = load<n>(slice.value + i), first{}, second{}, mean{};
  if constexpr (Rule::states >= 1) first = load<n>(slice.first + i);
  if constexpr (Rule::states >= 2) second = load<n>(slice.second + i);
  if (average) mean = load<n>(slice.average + i);
#pragma unroll
  for (int e = 0; e < n; ++e) rule(gradient[e] * factor, value[e], first[e], second[e]);
  store<n>(slice.value + i, value);
  if (slice.rounded) assign_all<n>(slice.rounded + i, value);
  if constexpr (Rule::states >= 1) store<n>(slice.first + i, first);
  if constexpr (Rule::states >= 2) store<n>(slice.second + i, second);
  if (!slice.keeps_gradient) store<n>(slice.gradient + i, Floats<n>{});
  if (!average) return;
#pragma unroll
  for (int e = 0; e < n; ++e) mean[e] += rule.smoothing * (value[e] - mean[e]);
  store<n>(slice.average + i, mean);
}

// Skips the update of a weight: clears its gradient and rounds its value.
__device__ __forceinline__ void skip_one(const OptimizerSlice& slice, std::int64_t i) {
  if (!slice.keeps_gradient) slice.gradient[i] = 0.0f;
  if (slice.rounded) slice.rounded[i] = to_bf16(slice.value[i]);
}

// Whether all arrays can be read four elements at a time.
__device__ __forceinline__ bool is_aligned(const OptimizerSlice& slice) {
  const auto bits = [](const void* x) { return reinterpret_cast<std::uintptr_t>(x); };
  return (bits(slice.value) | bits(slice.gradient) | bits(slice.first) | bits(slice.second) |
          bits(slice.average) | 2 * bits(slice.rounded)) %
             16 ==
         0;
}

template <class Rule>
__global__ void __launch_bounds__(threads) update_kernel(Table table, Rule rule) {
  const Entry& entry = entry_of(table, blockIdx.x);
  const OptimizerSlice slice = entry.slice;
  const std::int64_t begin = (blockIdx.x - entry.first) * chunk;
  const std::int64_t end = begin + chunk < slice.n ? begin + chunk : slice.n;
  const bool average = slice.average && rule.smoothing != 0.0f;
  const float factor = rule.gradient_factor ? *rule.gradient_factor : 1.0f;
  if (std::isnan(factor)) {
    for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) skip_one(slice, i);
    return;
  }
  std::int64_t rest = begin;  // elements from here on are updated one at a time
  if (is_aligned(slice)) {
    rest = end - end % 4;
    for (std::int64_t i = begin + 4 * threadIdx.x; i < rest; i += 4 * blockDim.x)
      update_some<4>(slice, rule, i, factor, average);
  }
  for (std::int64_t i = rest + threadIdx.x; i < end; i += blockDim.x)
    update_some<1>(slice, rule, i, factor, average);
}

template <class Rule>
void update(const Cuda& cuda, const OptimizerSlice* slices, std::int64_t count, const Rule& rule) {
  const Table table = upload_table(cuda, slices, count);
  launch(update_kernel<Rule>, static_cast<unsigned>(table.blocks), threads, 0, cuda, table, rule);
}

__global__ void squares_kernel(Table table, double* sums) {
  const Entry& entry = entry_of(table, blockIdx.x);
  const float* const gradient = entry.slice.gradient;
  const std::int64_t begin = (blockIdx.x - entry.first) * chunk, n = entry.slice.n;
  const std::int64_t end = begin + chunk < n ? begin + chunk : n;
  double sum = 0;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x)
    sum += static_cast<double>(gradient[i]) * static_cast<double>(gradient[i]);
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

constexpr unsigned total_threads = 1024;

__global__ void __launch_bounds__(total_threads)
    total_kernel(std::int64_t n, const double* sums, double* total) {
  double sum = 0;
#pragma unroll 8  // loads in flight
  for (std::int64_t i = threadIdx.x; i < n; i += total_threads) sum += sums[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *total = sum;
}

__global__ void clip_kernel(const double* squares, double scale, double limit, float* factor) {
  *factor = clipping_factor(*squares, scale, limit);
}

}  // namespace

void gradient_norm_squared(const Cuda& cuda, const OptimizerSlice* slices, std::int64_t count,
                           double* sum) {
  const Table table = upload_table(cuda, slices, count);
  double* const sums = workspace<double>(cuda, std::max<std::int64_t>(table.blocks, 1));
  launch(squares_kernel, static_cast<unsigned>(table.blocks), threads, 0, cuda, table, sums);
  launch(total_kernel, 1, total_threads, 0, cuda, table.blocks, sums, sum);
}

void clip(const Cuda& cuda, const double* squares, double scale, double limit, float* factor) {
  launch(clip_kernel, 1, 1, 0, cuda, squares, scale, limit, factor);
}

void adam(const Cuda& cuda, const OptimizerSlice* slices, std::int64_t count,
          const AdamStep& step) {
  update(cuda, slices, count, step);
}
void adadelta(const Cuda& cuda, const OptimizerSlice* slices, std::int64_t count,
              const AdadeltaStep& step) {
  update(cuda, slices, count, step);
}
void adagrad(const Cuda& cuda, const OptimizerSlice* slices, std::int64_t count,
             const AdagradStep& step) {
  update(cuda, slices, count, step);
}
void sgd(const Cuda& cuda, const OptimizerSlice* slices, std::int64_t count, const SgdStep& step) {
  update(cuda, slices, count, step);
}
void momentum(const Cuda& cuda, const OptimizerSlice* slices, std::int64_t count,
              const MomentumStep& step) {
  update(cuda, slices, count, step);
}

}  // namespace nmt::kernels
