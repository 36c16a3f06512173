#include "nmt/kernels/gemm_batched.h"

#include "cuda/packed.h"
#include "cuda/transpose.h"

namespace nmt::kernels {
namespace {

using namespace nmt::cuda;

void step(Operand& x, std::int64_t elements) {
  if (x.f32) x.f32 += elements;
  if (x.bf16) x.bf16 += elements;
}

// Every plane is one call over all groups; planes that share an output follow each other and add up.
void multiply_planes(const Cuda& cuda, const GemmBatch& batch, Product product) {
  product.count = batch.groups;
  product.c_stride = batch.c_group;
  for (std::int64_t p = 0; p < batch.planes; ++p) {
    if (p > 0 && batch.c_plane == 0) product.beta = 1.0f;
    multiply(cuda, product);
    step(product.a, batch.a_plane);
    step(product.b, batch.b_plane);
    product.c += batch.c_plane;
  }
}

}  // namespace

void gemm_batched(const Cuda& cuda, const GemmBatch& batch, bool transpose_a, bool transpose_b, std::int64_t m,
                  std::int64_t n, std::int64_t k, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                  float beta, float* c, std::int64_t ldc) {
  NMT_CHECK(beta == 0.0f || beta == 1.0f, "a batched product takes beta 0 or 1, not {}", beta);
  multiply_planes(cuda, batch,
                  {.m = m,
                   .n = n,
                   .k = k,
                   .a = {.transpose = transpose_a, .f32 = a, .ld = lda, .stride = batch.a_group},
                   .b = {.transpose = transpose_b, .f32 = b, .ld = ldb, .stride = batch.b_group},
                   .beta = beta,
                   .c = c,
                   .ldc = ldc});
}

// Group by group, the planes of a group side by side, each op(B) transposed [n,k].
void pack_batched(const Cuda& cuda, const GemmBatch& batch, bool transpose_b, std::int64_t k, std::int64_t n,
                  const float* b, std::int64_t ldb, float* packed) {
  const GemmBatch source = batch;
  const std::int64_t size = k * n;
  const auto value = [=] __device__(std::int64_t i) {
    const std::int64_t product = i / size, row = i % size / k, column = i % k;  // [n,k] of this product
    const float* from = b + product / source.planes * source.b_group + product % source.planes * source.b_plane;
    return transpose_b ? from[row * ldb + column] : from[column * ldb + row];
  };
  const std::int64_t all = batch.groups * batch.planes * size;
  if (packs_bfloat16(cuda)) {
    Bfloat16* const to = as_bfloat16(packed);
    each(cuda, all, [=] __device__(std::int64_t i) { to[i] = to_bf16(value(i)); });
  } else {
    each(cuda, all, [=] __device__(std::int64_t i) { packed[i] = value(i); });
  }
}

void gemm_packed_batched(const Cuda& cuda, const GemmBatch& batch, std::int64_t m, std::int64_t n, std::int64_t k,
                         const float* a, std::int64_t lda, const float* packed, bool accumulate, float* c,
                         std::int64_t ldc) {
  GemmBatch from_packed = batch;
  from_packed.b_group = batch.planes * k * n;
  from_packed.b_plane = k * n;
  multiply_planes(cuda, from_packed,
                  {.m = m,
                   .n = n,
                   .k = k,
                   .a = {.f32 = a, .ld = lda, .stride = batch.a_group},
                   .b = packed_operand(cuda, packed, k, from_packed.b_group),
                   .beta = accumulate ? 1.0f : 0.0f,
                   .c = c,
                   .ldc = ldc});
}

}  // namespace nmt::kernels
