// Cudnn in a build without cuDNN: open() returns null and the reason.

#include "kernels/recurrent/cudnn.h"

#include "core/error.h"

namespace nmt::kernels {

namespace {
constexpr const char* reason = "this build has no cuDNN";
}

struct Cudnn::State {};

std::unique_ptr<Cudnn> Cudnn::open(const Cuda&, std::string& why) {
  why = reason;
  return nullptr;
}
Cudnn::~Cudnn() = default;

// Never called: no object can exist.
CudnnSizes Cudnn::sizes(const CudnnPass&) const {
  NMT_FAIL("{}", reason);
}
void Cudnn::pack(const CudnnLayer&, const CudnnWeights&, float*) const {
  NMT_FAIL("{}", reason);
}
void Cudnn::forward(const CudnnPass&) const {
  NMT_FAIL("{}", reason);
}
void Cudnn::backward(const CudnnPass&, const CudnnGradient&) const {
  NMT_FAIL("{}", reason);
}

}  // namespace nmt::kernels
