#include "kernels/products/product_library.h"

#include "core/error.h"
#include "kernels/products/product.h"

#include <dlfcn.h>

namespace nmt::kernels {
namespace {

// The part of oneDNN's C interface (oneapi/dnnl/dnnl.h) that is used; the soname guards its ABI.
// Row-major.
struct Version {
  int major, minor, patch;
};
using GetVersion = const Version* (*)();
using Sgemm = int (*)(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n,
                      std::int64_t k, float alpha, const float* a, std::int64_t lda, const float* b,
                      std::int64_t ldb, float beta, float* c, std::int64_t ldc);
using SetThreads = void (*)(int);

template <class Function>
Function find(void* handle, const char* name) {
  return reinterpret_cast<Function>(dlsym(handle, name));
}

}  // namespace

struct ProductLibrary::Functions {
  Sgemm sgemm;
  GetVersion version;
  SetThreads set_threads;  // of oneDNN's OpenMP runtime; null: none
};

ProductLibrary::ProductLibrary(void* handle) {
  static const Functions functions{find<Sgemm>(handle, "dnnl_sgemm"),
                                   find<GetVersion>(handle, "dnnl_version"),
                                   find<SetThreads>(handle, "omp_set_num_threads")};
  functions_ = &functions;
  if (!functions.sgemm || !functions.version) return;
  const Version& version = *functions.version();
  name_ = fmt::format("oneDNN {}.{}.{}", version.major, version.minor, version.patch);
}

const ProductLibrary* ProductLibrary::open(std::string* why) {
  struct Opened {
    void* handle = nullptr;
    std::string why;
    Opened() {
      for (const char* soname : {"libdnnl.so.3", "libdnnl.so.2"})
        if ((handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL))) return;
      why = "libdnnl.so.3 and libdnnl.so.2 are not installed (Debian: libdnnl2)";
    }
  };
  static const Opened opened;
  if (!opened.handle) {
    if (why) *why = opened.why;
    return nullptr;
  }
  static const ProductLibrary library(opened.handle);
  if (!library.name_.empty()) return &library;
  if (why) *why = "libdnnl has no dnnl_sgemm";
  return nullptr;
}

bool ProductLibrary::takes(const Product& p) const {
  if (p.packed || p.m < 32 || p.m * p.n * p.k < 32 * 1024) return false;
  // docs/design/products.md: the own tiles are as fast or faster for A B with many rows and a short
  // k.
  return p.transpose_a || p.k >= 512 || p.m < 1000;
}

void ProductLibrary::run(const Product& p, std::int64_t m_begin, std::int64_t m_end,
                         std::int64_t n_begin, std::int64_t n_end) const {
  // The pool already splits the work, so oneDNN runs single-threaded; the OpenMP setting is per
  // thread.
  thread_local bool single = false;
  if (!single && functions_->set_threads) functions_->set_threads(1);
  single = true;
  const int status = functions_->sgemm(
      p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', m_end - m_begin, n_end - n_begin, p.k,
      1.0f, p.transpose_a ? p.a + m_begin : p.a + m_begin * p.lda, p.lda,
      p.transpose_b ? p.b + n_begin * p.ldb : p.b + n_begin, p.ldb, p.accumulate ? 1.0f : 0.0f,
      p.c + m_begin * p.ldc + n_begin, p.ldc);
  NMT_CHECK(status == 0, "dnnl_sgemm of [{},{}] x [{},{}] failed with status {}", m_end - m_begin,
            p.k, p.k, n_end - n_begin, status);
}

}  // namespace nmt::kernels
