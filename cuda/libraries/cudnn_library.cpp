#include "cuda/libraries/cudnn_library.h"

namespace nmt::cuda {
namespace {

// cuDNN is 0.5 GB with its parts and is opened when a model's layers are to run there.
struct Opened : CudnnLibrary {
  Opened() { NMT_CUDNN_FUNCTIONS(NMT_FIND_FUNCTION); }
  DynamicLibrary library{soname("libcudnn", CUDNN_MAJOR)};
};

const Opened& opened() {
  static const Opened& once = *new Opened;  // never closed: CUDA ends at exit
  return once;
}

}  // namespace

const CudnnLibrary* CudnnLibrary::open(std::string& why) {
  why = opened().library.error();
  return why.empty() ? &opened() : nullptr;
}

const CudnnLibrary& CudnnLibrary::get() {
  return opened();
}

}  // namespace nmt::cuda
