#include "cuda/runtime/check.h"
#include "tensor/device_lost.h"

#include <string_view>

namespace nmt::cuda {

std::string call_name(const char* call) {
  const std::string_view text(call), name = text.substr(0, text.find_first_of("(<"));
  return std::string(name.substr(name.find_last_of('.') + 1));  // of "library.cublasCreate" too
}

void fail_call(const std::string& message) {
  // The runtime reports an error once if the device stays usable, and at every call if the context
  // is corrupted.
  cudaGetLastError();
  std::size_t free = 0, total = 0;
  const cudaError_t next = cudaMemGetInfo(&free, &total);
  const bool captures = next >= cudaErrorStreamCaptureUnsupported && next <= cudaErrorCapturedEvent;
  if (next == cudaSuccess || captures) NMT_FAIL("{}", message);
  throw DeviceLost(message + "; this process can no longer use the GPU: start it again");
}

}  // namespace nmt::cuda
