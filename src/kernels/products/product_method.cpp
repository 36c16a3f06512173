#include "kernels/products/product_method.h"

#include "core/blocked_signals.h"
#include "core/dynamic_library.h"
#include "core/error.h"
#include "kernels/products/bf16_products.h"
#include "kernels/products/product.h"

namespace nmt::kernels {
namespace {

// The part of oneDNN's C interface (oneapi/dnnl/dnnl.h) that is used; the soname guards its ABI.
// Row-major.
struct Version {
  int major, minor, patch;
};

}  // namespace

struct ProductMethod::Functions {
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

ProductMethod::ProductMethod(const Functions& functions)
    : kind_(Kind::library), functions_(&functions) {
  const Version& version = *functions.version();
  name_ = fmt::format("oneDNN {}.{}.{}", version.major, version.minor, version.patch);
}

ProductMethod::ProductMethod(const Bf16Products& products)
    : kind_(Kind::tiles), rounded_(&products), name_(fmt::format("own tiles, {}", products.name)) {}

const ProductMethod& ProductMethod::bfloat16() {
  static const ProductMethod rounding(kernels::bf16_products());
  return rounding;
}

const ProductMethod* ProductMethod::bfloat16x3() {
  const Bf16Products* const products = amx_split_products();
  if (!products) return nullptr;
  static const ProductMethod splitting(*products);
  return &splitting;
}

bool ProductMethod::rounds_inputs() const {
  return rounded_ && rounded_->parts == 1;
}

const ProductMethod& ProductMethod::separate() {
  static const ProductMethod rounding(Kind::separate, "own tiles, each operation rounded");
  return rounding;
}

const ProductMethod* ProductMethod::open(std::string* why) {
  static const Functions& functions = *new Functions;
  if (!functions.library.error().empty()) {
    if (why) *why = fmt::format("oneDNN (Debian: libdnnl2): {}", functions.library.error());
    return nullptr;
  }
  static const ProductMethod library(functions);
  return &library;
}

bool ProductMethod::takes(const Product& p) const {
  if (kind_ != Kind::library || p.packed || p.rounded || p.m < 32 || p.m * p.n * p.k < 32 * 1024)
    return false;
  return kinds_[static_cast<std::size_t>(kind_of(p))];
}

ProductKind kind_of(const Product& p) {
  if (p.transpose_a) return ProductKind::weight_gradient;
  if (p.k >= 512) return ProductKind::long_sums;
  return p.m < 1000 ? ProductKind::few_rows : ProductKind::many_rows;
}

void ProductMethod::run(const Product& p, std::int64_t m_begin, std::int64_t m_end,
                        std::int64_t n_begin, std::int64_t n_end) const {
  // The pool already splits the work, so oneDNN runs single-threaded; the OpenMP setting is per
  // thread.
  thread_local bool single = false;
  if (!single && functions_->set_threads) functions_->set_threads(1);
  single = true;
  // Its kernels move the stack pointer into a heap buffer, where a signal handler would overwrite
  // what is next to the buffer (oneDNN issue 4845; fixed in 3.11.2).
  const BlockedSignals blocked;
  const int status = functions_->sgemm(
      p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', m_end - m_begin, n_end - n_begin, p.k,
      1.0f, p.transpose_a ? p.a + m_begin : p.a + m_begin * p.lda, p.lda,
      p.transpose_b ? p.b + n_begin * p.ldb : p.b + n_begin, p.ldb, p.accumulate ? 1.0f : 0.0f,
      p.c + m_begin * p.ldc + n_begin, p.ldc);
  NMT_CHECK(status == 0, "dnnl_sgemm of [{},{}] x [{},{}] failed with status {}", m_end - m_begin,
            p.k, p.k, n_end - n_begin, status);
}

}  // namespace nmt::kernels
