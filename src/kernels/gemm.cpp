#include "nmt/kernels/gemm.h"

namespace nmt::kernels {
std::int64_t packed_panel() { return 16; }
}  // namespace nmt::kernels
