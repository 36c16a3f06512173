#pragma once

#include "core/rng.h"
#include "kernels/handles.h"

#include <cstdint>

namespace nmt {

/// Fills values[n] with the results of n calls of rng.normal(), in parallel.
void fill_normal(const Cpu& cpu, float* values, std::int64_t n, Rng& rng);

/// Draws a matrix [rows,columns] with row stride `stride`, uniformly (Haar measure) among those
/// whose rows, or columns if fewer, are orthonormal (Saxe et al. 2014). The result does not depend
/// on the number of threads.
void fill_orthogonal(const Cpu& cpu, float* values, std::int64_t rows, std::int64_t columns,
                     std::int64_t stride, Rng& rng);

}  // namespace nmt
