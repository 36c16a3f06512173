#include "kernels/products/one_dnn.h"

#include "core/dynamic_library.h"
#include "core/error.h"
#include "core/threads/blocked_signals.h"
#include "kernels/products/product.h"

#include <fmt/format.h>

namespace nmt::kernels {
namespace {

// The part of oneDNN's C interface (oneapi/dnnl/dnnl.h) that is used; the soname guards its ABI.
// Row-major.
struct Version {
  int major, minor, patch;
};

}  // namespace

struct OneDnn::Functions {
  DynamicLibrary library{"libdnnl.so.3", "libdnnl.so.2"};
  int (*sgemm)(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
               float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
               float beta, float* c, std::int64_t ldc) = nullptr;
  const Version* (*version)() = nullptr;
  // Of the OpenMP that oneDNN was built with; null: it was built without.
  void (*set_threads)(int) = nullptr;

  Functions() {
    library.find("dnnl_sgemm", sgemm);
    library.find("dnnl_version", version);
    library.find_optional("omp_set_num_threads", set_threads);
  }
};

OneDnn::OneDnn(const Functions& functions) : functions_(functions) {
  const Version& version = *functions.version();
  name_ = fmt::format("oneDNN {}.{}.{}", version.major, version.minor, version.patch);
}

const OneDnn* OneDnn::open(std::string* why) {
  static const Functions& functions = *new Functions;
  if (!functions.library.error().empty()) {
    if (why) *why = fmt::format("oneDNN (Debian: libdnnl2): {}", functions.library.error());
    return nullptr;
  }
  static const OneDnn library(functions);
  return &library;
}

void OneDnn::run(const Product& p, std::int64_t m_begin, std::int64_t m_end, std::int64_t n_begin,
                 std::int64_t n_end) const {
  // The pool already splits the work, so oneDNN runs single-threaded; the OpenMP setting is per
  // thread.
  thread_local bool single = false;
  if (!single && functions_.set_threads) functions_.set_threads(1);
  single = true;
  // Its kernels move the stack pointer into a heap buffer, where a signal handler would overwrite
  // what is next to the buffer (oneDNN issue 4845; fixed in 3.11.2).
  const BlockedSignals blocked;
  const int status = functions_.sgemm(
      p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', m_end - m_begin, n_end - n_begin, p.k,
      1.0f, p.transpose_a ? p.a + m_begin : p.a + m_begin * p.lda, p.lda,
      p.transpose_b ? p.b + n_begin * p.ldb : p.b + n_begin, p.ldb, p.accumulate ? 1.0f : 0.0f,
      p.c + m_begin * p.ldc + n_begin, p.ldc);
  NMT_CHECK(status == 0, "dnnl_sgemm of [{},{}] x [{},{}] failed with status {}", m_end - m_begin,
            p.k, p.k, n_end - n_begin, status);
}

}  // namespace nmt::kernels
