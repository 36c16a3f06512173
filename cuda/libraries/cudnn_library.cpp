#include "cuda/libraries/cudnn_library.h"

#include <dlfcn.h>

namespace nmt::cuda {
namespace {

// cuDNN is 0.5 GB with its parts, and is opened when a model's layers are to run there.
struct Opened {
  CudnnLibrary library;
  std::string why;

  Opened() {
    constexpr const char* name = "libcudnn.so.9";
    static_assert(CUDNN_MAJOR == 9);
    void* const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      why = fmt::format("{}; it belongs beside the program's libraries or into LD_LIBRARY_PATH",
                        dlerror());
      return;
    }
#define NMT_CUDNN_FIND(function) find(handle, #function, library.function);
    NMT_CUDNN_FUNCTIONS(NMT_CUDNN_FIND)
#undef NMT_CUDNN_FIND
  }

  template <class Function>
  void find(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    if (!function && why.empty()) why = fmt::format("libcudnn has no {}", name);
  }
};

const Opened& opened() {
  static const Opened once;
  return once;
}

}  // namespace

const CudnnLibrary* CudnnLibrary::open(std::string& why) {
  why = opened().why;
  return why.empty() ? &opened().library : nullptr;
}

const CudnnLibrary& CudnnLibrary::get() {
  return opened().library;
}

}  // namespace nmt::cuda
