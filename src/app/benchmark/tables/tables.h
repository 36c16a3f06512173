#pragma once

#include "app/benchmark/bench.h"

namespace nmt::app::bench {

// The tables of nmt-bench, in the order in which they run. Each calls Bench::row() for its rows.

void processor(Bench& bench);  ///< CPU: peak of each instruction set, read bandwidth of each cache
void products(Bench& bench);   ///< matrix products with the shapes of the shipped configs, compared
                               ///< with a BLAS
void zeros(Bench& bench);      ///< CPU: int8 products with rows in which many values are zero
void recurrences(
    Bench& bench);  ///< every unit's recurrence, forward and backward, without its projections
void matrix_states(Bench& bench);  ///< the scan of every matrix-state unit, forward and backward
void layers(Bench& bench);         ///< a recurrent layer of every unit
void groups(Bench& bench);  ///< the same with 1, 2, 4 and 8 groups, with and without rearrangement
void attention(Bench& bench);  ///< additive and dot attention, forward and backward
void softmax(Bench& bench);    ///< the fused softmax and cross-entropy with its three products
void pointwise(Bench& bench);  ///< memory-bound kernels
void optimizer(Bench& bench);  ///< update rules
void training(Bench& bench);   ///< a training pass of several models and units
void step(Bench& bench);       ///< a whole training step, split into its parts
void mixed(Bench& bench);      ///< a training pass in float32 and in bfloat16, CPU only
void growth(Bench& bench);     ///< a training pass for growing sentence length, width, depth,
                               ///< vocabulary and batch
void decoding(Bench& bench);   ///< a decoding step for several batch and beam sizes

}  // namespace nmt::app::bench
