#include "cuda/runtime/launch.h"
#include "faulty.h"

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

}  // namespace

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
float read_on_host(const float* x) {
  return *x;
}

}  // namespace nmt::test
