// cuDNN in a build without it: it can be asked for, and is not there.

#include "core/error.h"
#include "kernels/recurrent/cudnn.h"

namespace nmt::kernels {

namespace {
constexpr const char* reason = "this build has no cuDNN";
}

bool open_cudnn(const Cuda&, std::string& why) {
  why = reason;
  return false;
}
bool uses_cudnn(const Cuda&) {
  return false;
}

// Nobody gets here: it was not opened.
CudnnSizes cudnn_sizes(const Cuda&, const CudnnPass&) {
  NMT_FAIL("{}", reason);
}
void pack_cudnn(const Cuda&, const CudnnLayer&, const CudnnWeights&, float*) {
  NMT_FAIL("{}", reason);
}
void cudnn_forward(const Cuda&, const CudnnPass&) {
  NMT_FAIL("{}", reason);
}
void cudnn_backward(const Cuda&, const CudnnPass&, const CudnnGradient&) {
  NMT_FAIL("{}", reason);
}

}  // namespace nmt::kernels
