#include "cuda/kernels/recurrent/persistent/blocks_barrier.h"
#include "cuda/runtime/launch.h"
#include "faulty.h"

#include <cstring>

#include <mma.h>

namespace nmt::test {
namespace {

using namespace nmt::cuda;

__global__ void reverse_kernel(bool faulty, int n, const float* x, float* out) {
  NMT_DYNAMIC_SHARED(values, float);
  const int i = static_cast<int>(threadIdx.x);
  values[i] = x[i];
  if (!faulty) __syncthreads();
  out[i] = values[n - 1 - i];
}

__global__ void copy_kernel(bool faulty, int n, const float* x, float* out) {
  const int i = static_cast<int>(grid_index());
  if (i < n || (faulty && i == n)) out[i] = i < n ? x[i] : 0.0f;
}

__global__ void divergent_barrier_kernel(int reaching) {
  if (static_cast<int>(threadIdx.x) < reaching) __syncthreads();
}

__global__ void two_barriers_kernel() {
  if (threadIdx.x % 2 == 0)
    __syncthreads();
  else
    __syncthreads();
}

__global__ void partial_shuffle_kernel() {
  if (threadIdx.x < 16) __shfl_xor_sync(all_lanes, 1.0f, 1);
}

__global__ void shuffle_outside_mask_kernel(float* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0xFFFFu, 1.0f, 20);
}

__global__ void two_writers_kernel(bool faulty, float* out) {
  if (threadIdx.x != 0) return;
  if (faulty)
    *out += 1.0f;
  else
    atomicAdd(out, 1.0f);
}

__global__ void read_unwritten_kernel(float* out) {
  NMT_SHARED(values, float[32]);
  if (threadIdx.x < 31) values[threadIdx.x] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = values[threadIdx.x];
}

__global__ void warp_neighbor_kernel(float* out) {
  NMT_SHARED(values, float[64]);
  values[threadIdx.x] = static_cast<float>(threadIdx.x);
  __syncwarp();
  out[threadIdx.x] = values[(threadIdx.x + 1) % blockDim.x];
}

__global__ void read_late_kernel(const float* x, float* out) {
  __syncthreads();
  __syncthreads();
  const float value = x[0];
  if (threadIdx.x == 0) out[0] = value;
}

__global__ void change_kernel(float* x) {
  x[0] += 1;
}

__global__ void share_word_kernel(int fault_number, float* x, float* out) {
  const auto fault = static_cast<WordFault>(fault_number);
  if (threadIdx.x == 0) *reinterpret_cast<float4*>(x) = {1, 2, 3, 4};
  if (fault != WordFault::word_then_byte) __syncthreads();
  const unsigned byte = threadIdx.x - 1;  // of 3 in little-endian order, but for the last one
  if (byte < 3) reinterpret_cast<unsigned char*>(x + 1)[byte] = byte == 2 ? 64 : 0;
  if (fault != WordFault::byte_then_word) __syncthreads();
  if (threadIdx.x == 4) out[0] = x[1];
}

__global__ void askew_kernel(const float* x, float* out) {
  out[0] = *reinterpret_cast<const float*>(reinterpret_cast<const char*>(x) + 2);
}

__global__ void vector_kernel(int first, const float* x, float* out) {
  const float4 four = *reinterpret_cast<const float4*>(x + first);
  out[0] = four.x + four.w;
}

__global__ void local_kernel(int i, float* out) {
  float values[4] = {out[0], 2, 3, out[0]};
  out[0] = values[i];
}

__global__ void divide_and_shift_kernel(int divisor, int bits, float* out) {
  out[0] = static_cast<float>(1 / divisor + (1 << bits));
}

__global__ void meeting_kernel(int fault_number, unsigned* counter, float* x, float* sums) {
  const auto fault = static_cast<MeetingFault>(fault_number);
  const unsigned blocks = gridDim.x, block = blockIdx.x;
  const bool odd = block == blocks - 1;
  const auto wait = [&] {
    if (fault == MeetingFault::no_barrier) return;
    if (fault == MeetingFault::block_barrier) return __syncthreads();
    if (fault == MeetingFault::missing_thread && odd && threadIdx.x % 2 == 1) return;
    blocks_barrier(counter, blocks + (fault == MeetingFault::wrong_count && odd ? 1 : 0),
                   block == 0 || (fault == MeetingFault::two_leaders && odd));
  };
  for (int step = 0; step < 3; ++step) {
    if (fault == MeetingFault::missing_block && odd && step == 1) return;
    if (threadIdx.x == 0) x[block] += 1;
    wait();
    if (threadIdx.x == 0) sums[block] += x[(block + 1) % blocks];
    if (fault != MeetingFault::write_too_early) wait();
  }
}

__global__ void pairs_kernel(bool faulty, unsigned* counters, float* x, float* out) {
  const unsigned block = blockIdx.x, set = block / 2;
  if (threadIdx.x == 0) x[block] = static_cast<float>(block);
  blocks_barrier(counters + set, 2, block % 2 == 0);
  if (threadIdx.x == 0) out[block] = x[faulty ? (block + 2) % 4 : block ^ 1u];
}

__global__ void readers_kernel(bool faulty, unsigned* counter, float* x, float* out) {
  blocks_barrier(counter, gridDim.x, blockIdx.x == 0);
  if (threadIdx.x == 0) out[blockIdx.x] = x[0];
  if (!faulty) blocks_barrier(counter, gridDim.x, blockIdx.x == 0);
  if (blockIdx.x == 1 && threadIdx.x == 0) x[0] = 2;
}

__global__ void tile_kernel(int fault_number, const unsigned short* a, const unsigned short* b,
                            float* c) {
  const auto fault = static_cast<TileFault>(fault_number);
  if (fault == TileFault::half_warp && threadIdx.x >= 16) return;
  const auto pair = [](const unsigned short* from) {
    return from[0] | static_cast<unsigned>(from[1]) << 16;
  };
  const unsigned row = threadIdx.x / 4, k = threadIdx.x % 4 * 2;
  std::array<unsigned, 4> x{pair(a + row * 16 + k), pair(a + (row + 8) * 16 + k),
                            pair(a + row * 16 + k + 8), pair(a + (row + 8) * 16 + k + 8)};
  if (fault == TileFault::layout) std::swap(x[1], x[2]);
  float sum[4] = {};
  emulator::multiply_tile(sum, x, {pair(b + row * 16 + k), pair(b + row * 16 + k + 8)});
  for (unsigned i = 0; i < 4; ++i) c[(row + i / 2 * 8) * 8 + k + i % 2] = sum[i];
}

__global__ void shared_kernel(std::size_t bytes) {
  NMT_DYNAMIC_SHARED(values, char);
  values[bytes - 1] = 1;
}

struct Padded {
  const float* x;
  float value;
  float* to;
};
__global__ void add_padded_kernel(Padded a) {
  a.to[0] = a.x[0] + a.value;
}

struct Listed {
  struct {
    const float* x;
    double weight;
  } item[5];
  int count;
};
__global__ void add_listed_kernel(Listed list, float* to) {
  for (int i = 0; i < list.count; ++i)
    to[0] += list.item[i].x[0] * static_cast<float>(list.item[i].weight);
}

// 30 KB of fixed shared memory.
__global__ void fixed_kernel() {
  NMT_SHARED(fixed, char[30 * 1024]);
  fixed[0] = 1;
}

}  // namespace

void use_fixed(const Cuda& cuda, std::size_t bytes) {
  launch(fixed_kernel, 1, 1, bytes, cuda);
}
void use_fixed_together(const Cuda& cuda, unsigned blocks, std::size_t bytes) {
  launch_together(fixed_kernel, blocks, 1, bytes, cuda);
}
std::int64_t fixed_blocks(const Cuda& cuda, std::size_t bytes) {
  return resident_blocks(fixed_kernel, 1, bytes, cuda);
}

__global__ void limited_kernel(std::size_t bytes) {
  NMT_DYNAMIC_SHARED(values, char);
  values[bytes - 1] = 1;
}
void use_shared(const Cuda& cuda, std::size_t bytes) {
  launch(shared_kernel, 1, 1, bytes, cuda, bytes);
}
std::int64_t shared_blocks(const Cuda& cuda, std::size_t bytes) {
  return resident_blocks(shared_kernel, 1, bytes, cuda);
}
void add_padded(const Cuda& cuda, int padding, const float* x, float value, float* to) {
  Padded a;
  std::memset(static_cast<void*>(&a), padding, sizeof a);
  a.x = x;
  a.value = value;
  a.to = to;
  launch(add_padded_kernel, 1, 1, 0, cuda, a);
}
void add_listed(const Cuda& cuda, int count, const float* x, float* to) {
  Listed list{};
  for (; list.count < count; ++list.count) list.item[list.count] = {x, 1.0};
  launch(add_listed_kernel, 1, 1, 0, cuda, list, to);
}

void meet(const Cuda& cuda, MeetingFault fault, int blocks, unsigned* counter, float* x,
          float* sums) {
  launch_together(meeting_kernel, static_cast<unsigned>(blocks), 64, 0, cuda,
                  static_cast<int>(fault), counter, x, sums);
}
void meet_apart(const Cuda& cuda, unsigned* counter, float* x) {
  launch(meeting_kernel, 1, 32, 0, cuda, 0, counter, x, x);
}
void meet_in_pairs(const Cuda& cuda, bool faulty, unsigned* counters, float* x, float* out) {
  launch_together(pairs_kernel, 4, 32, 0, cuda, faulty, counters, x, out);
}
void write_after_readers(const Cuda& cuda, bool faulty, int blocks, unsigned* counter, float* x,
                         float* out) {
  launch_together(readers_kernel, static_cast<unsigned>(blocks), 32, 0, cuda, faulty, counter, x,
                  out);
}
void multiply_tile(const Cuda& cuda, TileFault fault, const unsigned short* a,
                   const unsigned short* b, float* c) {
  launch(tile_kernel, 1, 32, 0, cuda, static_cast<int>(fault), a, b, c);
}

void reverse(const Cuda& cuda, bool faulty, int n, const float* x, float* out) {
  launch(reverse_kernel, 1, static_cast<unsigned>(n), static_cast<unsigned>(n) * sizeof(float),
         cuda, faulty, n, x, out);
}
void reverse_past_shared(const Cuda& cuda, int n, const float* x, float* out) {
  launch(reverse_kernel, 1, static_cast<unsigned>(n), static_cast<unsigned>(n) * sizeof(float) - 48,
         cuda, false, n, x, out);
}
void copy(const Cuda& cuda, bool faulty, int n, const float* x, float* out) {
  launch(copy_kernel, static_cast<unsigned>(n / 32 + 1), 32, 0, cuda, faulty, n, x, out);
}
void divergent_barrier(const Cuda& cuda, int threads, int reaching) {
  launch(divergent_barrier_kernel, 1, static_cast<unsigned>(threads), 0, cuda, reaching);
}
void two_barriers(const Cuda& cuda, int threads) {
  launch(two_barriers_kernel, 1, static_cast<unsigned>(threads), 0, cuda);
}
void partial_shuffle(const Cuda& cuda) {
  launch(partial_shuffle_kernel, 1, 32, 0, cuda);
}
void shuffle_outside_mask(const Cuda& cuda, float* out) {
  launch(shuffle_outside_mask_kernel, 1, 32, 0, cuda, out);
}
void two_writers(const Cuda& cuda, bool faulty, float* out) {
  launch(two_writers_kernel, 3, 32, 0, cuda, faulty, out);
}
void read_unwritten(const Cuda& cuda, float* out) {
  launch(read_unwritten_kernel, 1, 32, 0, cuda, out);
}
void warp_neighbor(const Cuda& cuda, int threads, float* out) {
  launch(warp_neighbor_kernel, 1, static_cast<unsigned>(threads), 0, cuda, out);
}
void read_late_then_change(const Cuda& cuda, float* x, float* out) {
  launch(read_late_kernel, 1, 3, 0, cuda, x, out);
  launch(change_kernel, 1, 1, 0, cuda, x);
}
void share_word(const Cuda& cuda, WordFault fault, float* x, float* out) {
  launch(share_word_kernel, 1, 5, 0, cuda, static_cast<int>(fault), x, out);
}
void read_askew(const Cuda& cuda, const float* x, float* out) {
  launch(askew_kernel, 1, 1, 0, cuda, x, out);
}
void read_vector(const Cuda& cuda, int first, const float* x, float* out) {
  launch(vector_kernel, 1, 1, 0, cuda, first, x, out);
}
void index_local(const Cuda& cuda, int i, float* out) {
  launch(local_kernel, 1, 1, 0, cuda, i, out);
}
void divide_and_shift(const Cuda& cuda, int divisor, int bits, float* out) {
  launch(divide_and_shift_kernel, 1, 1, 0, cuda, divisor, bits, out);
}
float read_on_host(const float* x) {
  return *x;
}

}  // namespace nmt::test
