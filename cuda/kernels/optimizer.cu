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
Table send(const Cuda& cuda, const OptimizerSlice* slices, std::int64_t count) {
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
  void* const data = state.table.get(state, size);
  if (state.table_contents.size() != size ||
      std::memcmp(state.table_contents.data(), bytes, size) != 0) {
    // Never in a graph: the work runs again call by call, and the table is sent then.
    if (state.recording) state.recording->memory_moves();
    if (!state.recording || !state.recording->is_dropped()) {
      cuda.device->to_device(data, bytes, size);
      state.table_contents.assign(bytes, bytes + size);
    }
  }
  table.entries = static_cast<const Entry*>(data);
  return table;
}

// The entry to which this block belongs: the last one whose first block is not after it.
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

template <class Rule>
__global__ void update_kernel(Table table, Rule rule) {
  const Entry& entry = entry_of(table, blockIdx.x);
  const OptimizerSlice slice = entry.slice;
  const std::int64_t begin = (blockIdx.x - entry.first) * chunk;
  const std::int64_t end = begin + chunk < slice.n ? begin + chunk : slice.n;
  const bool average = slice.average && rule.smoothing != 0.0f;
  const float factor = rule.gradient_factor ? *rule.gradient_factor : 1.0f;
  const bool applies = !std::isnan(factor);
  for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
    const float gradient = slice.gradient[i] * factor;
    if (!slice.keeps_gradient) slice.gradient[i] = 0.0f;
    float value = slice.value[i], first = 0.0f, second = 0.0f;
    if (!applies) {
      if (slice.rounded) slice.rounded[i] = to_bf16(value);
      continue;
    }
    if constexpr (Rule::states >= 1) first = slice.first[i];
    if constexpr (Rule::states >= 2) second = slice.second[i];
    rule(gradient, value, first, second);
    slice.value[i] = value;
    if (slice.rounded) slice.rounded[i] = to_bf16(value);
    if constexpr (Rule::states >= 1) slice.first[i] = first;
    if constexpr (Rule::states >= 2) slice.second[i] = second;
    if (average) slice.average[i] += rule.smoothing * (value - slice.average[i]);
  }
}

template <class Rule>
void update(const Cuda& cuda, const OptimizerSlice* slices, std::int64_t count, const Rule& rule) {
  const Table table = send(cuda, slices, count);
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

__global__ void total_kernel(std::int64_t n, const double* sums, double* total) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += sums[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *total = sum;
}

__global__ void clip_kernel(const double* squares, double share, double limit, float* factor) {
  *factor = clipping_factor(*squares, share, limit);
}

}  // namespace

void gradient_norm_squared(const Cuda& cuda, const OptimizerSlice* slices, std::int64_t count,
                           double* sum) {
  const Table table = send(cuda, slices, count);
  double* const sums = workspace<double>(cuda, std::max<std::int64_t>(table.blocks, 1));
  launch(squares_kernel, static_cast<unsigned>(table.blocks), threads, 0, cuda, table, sums);
  launch(total_kernel, 1, threads, 0, cuda, table.blocks, sums, sum);
}

void clip(const Cuda& cuda, const double* squares, double share, double limit, float* factor) {
  launch(clip_kernel, 1, 1, 0, cuda, squares, share, limit, factor);
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
