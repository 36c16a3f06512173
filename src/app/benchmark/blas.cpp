#include "app/benchmark/blas.h"

#include "kernels/instruction_set.h"

#include <fmt/format.h>

namespace nmt::app::bench {
namespace {

// Of enum CBLAS_ORDER and CBLAS_TRANSPOSE, which every CBLAS shares.
constexpr int row_major = 101, plain = 111, transposed = 112;

const char openblas[] = "libopenblas.so.0";

// OpenBLAS computes with kernels for SSE3 on processors that are newer than itself.
std::string advice(const std::string& core) {
  const std::string level = kernels::instruction_set();
  const char* const better = level.starts_with("x86-64-v4")   ? "SkylakeX"
                             : level.starts_with("x86-64-v3") ? "Haswell"
                                                              : nullptr;
  if (core != "Prescott" || !better) return "";
  return fmt::format(" (it does not know this processor; set OPENBLAS_CORETYPE={})", better);
}

}  // namespace

Blas::Blas(const std::string& file) : library_({file.empty() ? openblas : file}), name_(file) {
  library_.find("cblas_sgemm", cblas_sgemm_);
  if (!file.empty()) library_.require("--blas");
  library_.find_optional("openblas_get_corename", openblas_corename_);
  library_.find_optional("openblas_get_config", openblas_config_);
  library_.find_optional("mkl_get_version_string", mkl_version_);
  // Only our thread pool is used.
  void (*set_threads)(int) = nullptr;
  library_.find_optional(mkl_version_ ? "MKL_Set_Num_Threads" : "openblas_set_num_threads",
                         set_threads);
  if (set_threads) set_threads(1);
  if (openblas_config_) name_ = "OpenBLAS";
  if (mkl_version_) name_ = "MKL";
}

std::string Blas::description() const {
  if (!found()) return "absent";
  if (mkl_version_) {
    char text[256] = {};
    mkl_version_(text, sizeof text - 1);
    return text;
  }
  if (!openblas_config_ || !openblas_corename_) return name_;
  const std::string config = openblas_config_();
  const std::string core = openblas_corename_();
  return config.substr(0, config.find(' ', config.find(' ') + 1)) + ", " + core + advice(core);
}

void Blas::multiply(ThreadPool& pool, const BlasProduct& s, const float* a, const float* b,
                    float* c) const {
  const auto lda = s.transpose_a ? s.m : s.k, ldb = s.transpose_b ? s.k : s.n;
  const bool by_columns = s.n > s.m;
  pool.parallel_for(
      by_columns ? s.n : s.m, by_columns ? 32 : 1, [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t row = by_columns ? 0 : begin, column = by_columns ? begin : 0;
        const std::int64_t rows = by_columns ? s.m : end - begin,
                           columns = by_columns ? end - begin : s.n;
        cblas_sgemm_(row_major, s.transpose_a ? transposed : plain,
                     s.transpose_b ? transposed : plain, static_cast<int>(rows),
                     static_cast<int>(columns), static_cast<int>(s.k), 1.0f,
                     a + (s.transpose_a ? row : row * lda), static_cast<int>(lda),
                     b + (s.transpose_b ? column * ldb : column), static_cast<int>(ldb), 0.0f,
                     c + row * s.n + column, static_cast<int>(s.n));
      });
}

}  // namespace nmt::app::bench
