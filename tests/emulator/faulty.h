#pragma once

#include <kernels/backend.h>

namespace nmt::test {

// Kernels with one planted fault each, and their correct versions. Pointers are to device memory.

/// out[i] = x[n-1-i] through shared memory, n the threads of the one block; without the barrier
/// when faulty.
void reverse(const Cuda& cuda, bool faulty, int n, const float* x, float* out);
/// The same through 48 bytes more than launch() gives.
void reverse_past_shared(const Cuda& cuda, int n, const float* x, float* out);
/// out[i] = x[i] for i < n; one element too many when faulty.
void copy(const Cuda& cuda, bool faulty, int n, const float* x, float* out);
/// Only the first threads reach the barrier.
void divergent_barrier(const Cuda& cuda, int threads, int reaching);
/// The threads wait at two different barriers.
void two_barriers(const Cuda& cuda, int threads);
/// Half of a warp shuffles with a mask of the whole.
void partial_shuffle(const Cuda& cuda);
/// A lane reads another that its mask leaves out.
void shuffle_outside_mask(const Cuda& cuda, float* out);
/// Two blocks write one element; with atomics when not faulty.
void two_writers(const Cuda& cuda, bool faulty, float* out);
/// Reads uninitialized shared memory.
void read_unwritten(const Cuda& cuda, float* out);
/// A neighbor's value through shared memory, with __syncwarp() alone; right within a warp.
void warp_neighbor(const Cuda& cuda, int threads, float* out);
/// A block of three threads: out[0] = x[0] after two barriers, read by all of them; then, in a
/// launch of its own, x[0] += 1 without one.
void read_late_then_change(const Cuda& cuda, float* x, float* out);
/// Host code that reads device memory.
float read_on_host(const float* x);

}  // namespace nmt::test
