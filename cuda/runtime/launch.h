#pragma once

// Included by every .cu file. docs/design/cuda.md says how kernels are written.

#include "core/host_device.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/graph.h"
#include "cuda/runtime/state.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include <cuda_runtime.h>

// Shared memory is declared through these macros, since the emulator (tests/emulator) gives every
// block its own, checked memory:
//   NMT_SHARED(tile, float[32][33]);      a fixed size
//   NMT_DYNAMIC_SHARED(scores, float);    the size given to launch(), as float*, 32-byte aligned
#if defined(__CUDACC__)
#define NMT_SHARED(name, ...) __shared__ ::nmt::cuda::Same<__VA_ARGS__> name
#define NMT_DYNAMIC_SHARED(name, type)                                \
  extern __shared__ __align__(32) unsigned char nmt_dynamic_shared[]; \
  type* const name = reinterpret_cast<type*>(nmt_dynamic_shared)
#else
#define NMT_SHARED(name, ...) \
  auto& name = ::nmt::emulator::shared<::nmt::cuda::Same<__VA_ARGS__>>([] {})
#define NMT_DYNAMIC_SHARED(name, type) \
  type* const name = static_cast<type*>(::nmt::emulator::dynamic_shared())
#endif

namespace nmt::cuda {

template <class T>
using Same = T;

constexpr int warp_size = 32;
constexpr unsigned all_lanes = 0xFFFFFFFFu;

/// A kernel has to opt in to more than 48 KB of dynamic shared memory.
template <class... Parameters>
void allow_shared(void (*kernel)(Parameters...), std::size_t shared, CudaDevice::State& state) {
  if (shared <= 48 * 1024) return;
  const void* const name = reinterpret_cast<const void*>(kernel);
  std::size_t& allowed = state.allowed_shared[name];
  if (shared > allowed) allowed = raise_shared(state.index, name, shared);
}

/// The padding of arguments of at most so many bytes is cleared. In larger arguments g++ 12 clears
/// bytes of the values: it misplaces the padding after an array of structs of more than 64 bytes.
constexpr std::size_t max_cleared = 64;

/// Error: a grid that no device can launch. An empty one is not launched.
inline void check_grid(const dim3& grid) {
  constexpr unsigned max_x = 0x7FFFFFFFu, max_yz = 65535;
  NMT_CHECK(grid.x <= max_x && grid.y <= max_yz && grid.z <= max_yz,
            "a grid of {} x {} x {} blocks: at most {} x {} x {} are possible", grid.x, grid.y,
            grid.z, max_x, max_yz, max_yz);
}

enum class Blocks {
  independent,
  together  ///< a cooperative launch: all blocks are resident at once and may wait for each other
};

/// The only way to launch a kernel, beside launch_together(). Arguments are converted to the
/// kernel's parameter types. An empty grid launches nothing.
template <Blocks blocks = Blocks::independent, class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared,
            const Cuda& cuda, Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                "a kernel is launched with all of its arguments");
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  check_grid(grid);
  allow_shared(kernel, shared, state_of(cuda));
  static_assert((std::is_trivially_copyable_v<Parameters> && ...),
                "graphs keep arguments as bytes");
  const CudaDevice::State& state = state_of(cuda);
  std::tuple<Parameters...> values(std::forward<Arguments>(arguments)...);
  std::apply(
      // By value: g++ clears the padding of a lambda only where it is a variable.
      [&](Parameters... value) {
        void* pointers[] = {static_cast<void*>(&value)..., nullptr};
        if (state.recording) {
#if !defined(__CUDACC__) || defined(NMT_CLEARS_PADDING)
          // Graphs compare the bytes of arguments. Padding bytes of a struct or of a lambda's
          // captures are not part of the value.
          ((sizeof(Parameters) <= max_cleared ? __builtin_clear_padding(&value) : void()), ...);
#endif
          static constexpr std::array<std::size_t, sizeof...(Parameters)> sizes{
              sizeof(Parameters)...};
          const void* const name = reinterpret_cast<const void*>(kernel);
          if (!state.recording->on_kernel({name, grid, block, shared, pointers, sizes})) return;
        }
        // CUDA 12 does not deduce the type of a function.
        if constexpr (blocks == Blocks::together)
          NMT_CUDA_CHECK(cudaLaunchCooperativeKernel<void(Parameters...)>(
              kernel, grid, block, pointers, shared, state.stream));
        else
          NMT_CUDA_CHECK(cudaLaunchKernel<void(Parameters...)>(kernel, grid, block, pointers,
                                                               shared, state.stream));
      },
      values);
}

/// A cooperative launch, for kernels whose blocks wait for each other
/// (persistent/blocks_barrier.h). Error: the device cannot hold all blocks at once
/// (resident_blocks()). Graphs assume that a kernel is always launched cooperatively or never.
template <class... Parameters, class... Arguments>
void launch_together(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared,
                     const Cuda& cuda, Arguments&&... arguments) {
  launch<Blocks::together>(kernel, grid, block, shared, cuda,
                           std::forward<Arguments>(arguments)...);
}

/// Blocks of a kernel that the device holds at once.
template <class... Parameters>
std::int64_t resident_blocks(void (*kernel)(Parameters...), unsigned block, std::size_t shared,
                             const Cuda& cuda) {
  CudaDevice::State& state = state_of(cuda);
  if (!state.is_cooperative || shared > state.max_shared) return 0;
  allow_shared(kernel, shared, state);
  int blocks = 0;
  NMT_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel,
                                                               static_cast<int>(block), shared));
  return std::int64_t{blocks} * state.multiprocessors;
}

NMT_HOST_DEVICE std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// The number of blocks for n elements, `per_block` each, limited to a few per multiprocessor:
/// kernels loop with a grid stride.
inline unsigned blocks_for(const Cuda& cuda, std::int64_t n, std::int64_t per_block) {
  const std::int64_t max_blocks = std::int64_t{16} * state_of(cuda).multiprocessors;
  return static_cast<unsigned>(std::min(divide_up(n, per_block), max_blocks));
}

/// The thread's index in the grid and the number of threads, along x.
__device__ __forceinline__ std::int64_t grid_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ std::int64_t grid_stride() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

/// Reports a fault to the host, which fails at its next wait for the device. The kernel continues
/// without the invalid value.
__device__ __forceinline__ void report(Fault* fault, FaultKind kind, long long value,
                                       long long limit) {
  if (atomicCAS(&fault->claimed, 0, 1) == 0) {
    fault->value = value;
    fault->limit = limit;
    __threadfence_system();
    atomicExch(&fault->kind, int{kind});
  }
}

}  // namespace nmt::cuda
