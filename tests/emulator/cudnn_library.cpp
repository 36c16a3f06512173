// The emulated cuDNN instead of a library that is opened at run time. NMT_EMULATED_CUDNN=0 emulates
// a missing library.

#include "cuda/libraries/cudnn_library.h"

#include <cstdlib>
#include <string_view>

namespace nmt::cuda {

const CudnnLibrary& CudnnLibrary::get() {
  static const CudnnLibrary library = [] {
    CudnnLibrary emulated;
#define NMT_EMULATED_FUNCTION(name) emulated.name = &::name
    NMT_CUDNN_FUNCTIONS(NMT_EMULATED_FUNCTION);
#undef NMT_EMULATED_FUNCTION
    return emulated;
  }();
  return library;
}

const CudnnLibrary* CudnnLibrary::open(std::string& why) {
  const char* const setting = std::getenv("NMT_EMULATED_CUDNN");
  if (setting && std::string_view(setting) == "0") {
    why = "libcudnn.so.9: not found";
    return nullptr;
  }
  why.clear();
  return &get();
}

}  // namespace nmt::cuda
