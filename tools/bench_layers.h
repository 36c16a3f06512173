#pragma once

#include "nmt/core/thread_pool.h"

namespace nmt::tools {

/// Table: a layer of each unit, forward and backward.
void bench_layers(ThreadPool& pool);
/// Table: the same with 1, 2, 4 and 8 groups, with and without rearrangement.
void bench_groups(ThreadPool& pool);
/// Table: a whole training pass of the deep model, for several units.
void bench_training(ThreadPool& pool);

}  // namespace nmt::tools
