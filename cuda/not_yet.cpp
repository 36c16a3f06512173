// Kernels that the CUDA backend does not have yet. Each leaves this file with the .cu file that brings it.

#include "nmt/core/error.h"
#include "nmt/kernels/attention.h"

namespace nmt::kernels {
namespace {

[[noreturn]] void missing(const char* kernel) {
  NMT_FAIL("{} is not written for CUDA yet", kernel);
}

}  // namespace

// attention.cu: with it, the group `conditional` of tests/cuda joins groups.def, its driver calls these
void attention_forward(const Cuda&, const Attention&, std::int64_t, std::int64_t, const std::int32_t*, const float*,
                       float*, float*) {
  missing("attention_forward");
}
void attention_backward(const Cuda&, const Attention&, std::int64_t, const float*, const float*,
                        const AttentionGradient&) {
  missing("attention_backward");
}
std::int64_t attention_scratch(const Cuda&, const Attention&) {
  missing("attention_scratch");
}

}  // namespace nmt::kernels
