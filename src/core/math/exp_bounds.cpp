#include "core/math/exp_bounds.h"

namespace nmt::math {

const float exp_bound = 87.0f;
const float exp2_bound = 126.0f;

}  // namespace nmt::math
