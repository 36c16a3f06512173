#pragma once

// Bounds that kernels/math.h clamps arguments to. They are variables and not literals, so that
// g++ makes one minimum or maximum instruction of a clamp: with literals, g++ 12 makes a comparison
// and a blend, and may compute what follows for each side.

namespace nmt::math {

extern const float exp_bound;   ///< 87, of e^x
extern const float exp2_bound;  ///< 126, of 2^x

}  // namespace nmt::math
