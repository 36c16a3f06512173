#pragma once

#include "core/dynamic_library.h"
#include "core/threads/thread_pool.h"

#include <cstdint>
#include <string>

namespace nmt::app::bench {

struct BlasProduct {
  bool transpose_a, transpose_b;
  std::int64_t m, n, k;
};

/// A CBLAS as a comparison for our own GEMM: OpenBLAS, MKL (libmkl_rt) or another library, where
/// the dynamic loader finds it.
class Blas {
 public:
  /// Opens the library of this file name or path; "": OpenBLAS. Error (usage): a named library
  /// cannot be opened or has no cblas_sgemm.
  explicit Blas(const std::string& file);
  bool found() const { return library_.error().empty(); }
  /// "OpenBLAS", "MKL", or the file name of another library.
  const std::string& name() const { return name_; }
  /// Name, version and chosen kernels: "OpenBLAS 0.3.21, Cooperlake"; "absent".
  std::string description() const;
  /// C[M,N] = op(A) op(B): each thread calls the library on its rows or columns of C. OpenBLAS and
  /// MKL are single-threaded then; others may use threads of their own.
  void multiply(ThreadPool& pool, const BlasProduct& product, const float* a, const float* b,
                float* c) const;

 private:
  DynamicLibrary library_;
  std::string name_;
  void (*cblas_sgemm_)(int order, int transpose_a, int transpose_b, int m, int n, int k,
                       float alpha, const float* a, int lda, const float* b, int ldb, float beta,
                       float* c, int ldc) = nullptr;
  // Of OpenBLAS, or null.
  char* (*openblas_corename_)() = nullptr;
  char* (*openblas_config_)() = nullptr;
  // Of MKL, or null.
  void (*mkl_version_)(char* text, int size) = nullptr;
};

}  // namespace nmt::app::bench
