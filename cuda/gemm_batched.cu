#include "nmt/kernels/gemm_batched.h"

#include "cuda/blas.h"
#include "cuda/transpose.h"

namespace nmt::kernels {
namespace {

using namespace nmt::cuda;

// Every plane is one call over all groups; planes that share an output follow each other and add up.
void multiply_planes(const Cuda& cuda, const GemmBatch& batch, Product product) {
  product.count = batch.groups;
  product.a_stride = batch.a_group;
  product.b_stride = batch.b_group;
  product.c_stride = batch.c_group;
  const Product first = product;
  for (std::int64_t p = 0; p < batch.planes; ++p) {
    product.a = first.a + p * batch.a_plane;
    product.b = first.b + p * batch.b_plane;
    product.c = first.c + p * batch.c_plane;
    if (p > 0 && batch.c_plane == 0) product.beta = 1.0f;
    multiply(cuda, product);
  }
}

}  // namespace

void gemm_batched(const Cuda& cuda, const GemmBatch& batch, bool transpose_a, bool transpose_b, std::int64_t m,
                  std::int64_t n, std::int64_t k, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                  float beta, float* c, std::int64_t ldc) {
  NMT_CHECK(beta == 0.0f || beta == 1.0f, "a batched product takes beta 0 or 1, not {}", beta);
  multiply_planes(cuda, batch,
                  {.transpose_a = transpose_a,
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

// Group by group, the planes of a group side by side, each op(B) transposed [n,k].
void pack_batched(const Cuda& cuda, const GemmBatch& batch, bool transpose_b, std::int64_t k, std::int64_t n,
                  const float* b, std::int64_t ldb, float* packed) {
  const GemmBatch source = batch;
  const std::int64_t size = k * n;
  each(cuda, batch.groups * batch.planes * size, [=] __device__(std::int64_t i) {
    const std::int64_t product = i / size, row = i % size / k, column = i % k;  // [n,k] of this product
    const float* from = b + product / source.planes * source.b_group + product % source.planes * source.b_plane;
    packed[i] = transpose_b ? from[row * ldb + column] : from[column * ldb + row];
  });
}

void gemm_packed_batched(const Cuda& cuda, const GemmBatch& batch, std::int64_t m, std::int64_t n, std::int64_t k,
                         const float* a, std::int64_t lda, const float* packed, bool accumulate, float* c,
                         std::int64_t ldc) {
  GemmBatch from_packed = batch;
  from_packed.b_group = batch.planes * k * n;
  from_packed.b_plane = k * n;
  gemm_batched(cuda, from_packed, false, true, m, n, k, a, lda, packed, k, accumulate ? 1.0f : 0.0f, c, ldc);
}

}  // namespace nmt::kernels
