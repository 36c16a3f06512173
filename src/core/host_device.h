#pragma once

// Functions of one source that run on the CPU and, compiled by nvcc, on a GPU too.

#if defined(__CUDACC__)
#define NMT_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define NMT_HOST_DEVICE [[gnu::always_inline]] inline
#endif
