#pragma once

#include "core/rng.h"
#include "kernels/backend.h"

#include <cstdint>

namespace nmt {

/// values[n] as n calls of rng.normal() give them, on all threads.
void fill_normal(const Cpu& cpu, float* values, std::int64_t n, Rng& rng);

/// Draws a matrix [rows,columns] in rows of `stride`, uniformly (Haar measure) among those whose
/// rows, or columns where they are fewer, are orthogonal and of length 1 (Saxe et al. 2014). The
/// threads do not change the result.
void fill_orthogonal(const Cpu& cpu, float* values, std::int64_t rows, std::int64_t columns,
                     std::int64_t stride, Rng& rng);

}  // namespace nmt
