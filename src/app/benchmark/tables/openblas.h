#pragma once

#include "core/thread_pool.h"

#include <cstdint>
#include <string>

namespace nmt::app::bench {

/// OpenBLAS as a comparison for our own GEMM, where the dynamic loader finds it.
bool has_openblas();
/// Its version and the kernels it chose: "OpenBLAS 0.3.21, Cooperlake"; "absent".
std::string openblas_name();

struct OpenblasProduct {
  bool transpose_a, transpose_b;
  std::int64_t m, n, k;
};
/// C[M,N] = op(A) op(B): each thread calls the library single-threaded on its rows or columns of C.
void openblas_product(ThreadPool& pool, const OpenblasProduct& product, const float* a,
                      const float* b, float* c);

}  // namespace nmt::app::bench
