#pragma once

#include "nmt/core/thread_pool.h"

namespace nmt::tools {

/// Table: a layer of each unit, forward and backward.
void bench_layers(ThreadPool& pool);
/// Table: a whole training pass of the deep model, for several units.
void bench_training(ThreadPool& pool);

}  // namespace nmt::tools
