#pragma once

#include "nmt/core/thread_pool.h"

namespace nmt::tools {

/// Table: the fused softmax and cross-entropy with its three products.
void bench_softmax(ThreadPool& pool);
/// Table: kernels that memory bounds, beside the bandwidth of a reading loop.
void bench_pointwise(ThreadPool& pool);

}  // namespace nmt::tools
