#include "nmt/kernels/gemm.h"

#include "cuda/blas.h"
#include "cuda/elementwise.h"
#include "cuda/transpose.h"

namespace nmt::kernels {

using namespace nmt::cuda;

void gemm(const Cuda& cuda, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
          const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  multiply(cuda, {.transpose_a = transpose_a,
                  .transpose_b = transpose_b,
                  .m = m,
                  .n = n,
                  .k = k,
                  .a = a,
                  .lda = lda,
                  .b = b,
                  .ldb = ldb,
                  .beta = beta,
                  .c = c,
                  .ldc = ldc});
}

void pack(const Cuda& cuda, bool transpose_b, std::int64_t k, std::int64_t n, const float* b, std::int64_t ldb,
          float* packed) {
  if (transpose_b)
    copy_matrix(cuda, n, k, b, ldb, packed, k);
  else
    transpose(cuda, k, n, b, ldb, packed, k);
}

void gemm_packed(const Cuda& cuda, std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda,
                 const float* packed, bool accumulate, float* c, std::int64_t ldc) {
  gemm(cuda, false, true, m, n, k, a, lda, packed, k, accumulate ? 1.0f : 0.0f, c, ldc);
}

void gather_packed(const Cuda& cuda, std::int64_t rows, std::int64_t k, const std::int32_t* ids, const float* packed,
                   float* out) {
  each(cuda, rows * k, [=] __device__(std::int64_t i) { out[i] = packed[ids[i / k] * k + i % k]; });
}

}  // namespace nmt::kernels
