#pragma once

#include "kernels/handles.h"

#include <cstdint>

namespace nmt::kernels {

// The representation rearrangement of Gao et al. (NAACL 2018, section 2.2): a row is viewed as [K,
// width/K], transposed to [width/K, K] and flattened, so that every group of the next
// block-diagonal product reads channels of all groups.

/// y[r, j*K + g] = x[r, g*width/K + j]
NMT_KERNEL(rearrange, std::int64_t rows, std::int64_t groups, std::int64_t width, const float* x,
           float* y);
/// The inverse, which is also the gradient: dx[r, g*width/K + j] (+)= dy[r, j*K + g].
NMT_KERNEL(rearrange_back, std::int64_t rows, std::int64_t groups, std::int64_t width,
           const float* dy, bool accumulate, float* dx);

/// The same on the calling thread. [CPU only: building blocks]
void rearrange_rows(std::int64_t rows, std::int64_t groups, std::int64_t width, const float* x,
                    float* y);
void rearrange_back_rows(std::int64_t rows, std::int64_t groups, std::int64_t width,
                         const float* dy, bool accumulate, float* dx);

}  // namespace nmt::kernels
