#include "cuda/kernels/products/product_operands.h"
#include "cuda/kernels/transpose.h"
#include "kernels/products/gemm_batched.h"

namespace nmt::kernels {
namespace {

using namespace nmt::cuda;

// The planes of an input as one matrix: side by side in the stored rows, or one below the other.
void join(Operand& x, bool along_rows, std::int64_t planes, std::int64_t plane, std::int64_t rows) {
  if (along_rows) {
    x.planes = planes;
    x.plane = plane;
  } else {
    NMT_CHECK(plane == rows * x.ld, "planes of {} rows at a distance of {} elements", rows, plane);
  }
}

// One product per group, all groups in one call: planes that share an output are joined along k,
// others along n.
void multiply_groups(const Cuda& cuda, const GemmBatch& batch, Product product) {
  product.count = batch.groups;
  product.c_stride = batch.c_group;
  if (batch.planes > 1 && batch.c_plane == 0) {
    join(product.a, !product.a.transpose, batch.planes, batch.a_plane, product.k);
    join(product.b, product.b.transpose, batch.planes, batch.b_plane, product.k);
    product.k *= batch.planes;
  } else if (batch.planes > 1) {
    NMT_CHECK(batch.a_plane == 0, "planes with an input and an output of their own");
    join(product.b, !product.b.transpose, batch.planes, batch.b_plane, product.n);
    product.n *= batch.planes;
    product.c_planes = batch.planes;
    product.c_plane = batch.c_plane;
  }
  multiply(cuda, product);
}

}  // namespace

void gemm_batched(const Cuda& cuda, const GemmBatch& batch, bool transpose_a, bool transpose_b,
                  std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda,
                  const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  NMT_CHECK(beta == 0.0f || beta == 1.0f, "gemm_batched: beta is {}, expected 0 or 1", beta);
  multiply_groups(cuda, batch,
                  {.m = m,
                   .n = n,
                   .k = k,
                   .a = {.transpose = transpose_a, .f32 = a, .ld = lda, .stride = batch.a_group},
                   .b = {.transpose = transpose_b, .f32 = b, .ld = ldb, .stride = batch.b_group},
                   .beta = beta,
                   .c = c,
                   .ldc = ldc});
}

// Group by group, each op(B) transposed [n,k]; the planes of a group one below the other or, where
// they share an output, side by side.
void pack_batched(const Cuda& cuda, const GemmBatch& batch, bool transpose_b, std::int64_t k,
                  std::int64_t n, const float* b, std::int64_t ldb, float* packed) {
  const GemmBatch source = batch;
  const std::int64_t size = k * n;
  const auto value = [=] __device__(std::int64_t i) {
    const std::int64_t group = i / (source.planes * size), in_group = i % (source.planes * size);
    std::int64_t plane = in_group / size, row = in_group % size / k;
    const std::int64_t column = i % k;
    if (source.c_plane == 0) {
      plane = in_group / k % source.planes;
      row = in_group / (source.planes * k);
    }
    const float* from = b + group * source.b_group + plane * source.b_plane;
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

void gemm_packed_batched(const Cuda& cuda, const GemmBatch& batch, std::int64_t m, std::int64_t n,
                         std::int64_t k, const float* a, std::int64_t lda, const float* packed,
                         bool accumulate, float* c, std::int64_t ldc) {
  const bool side_by_side = batch.c_plane == 0;
  GemmBatch from_packed = batch;
  from_packed.b_group = batch.planes * k * n;
  from_packed.b_plane = side_by_side ? k : k * n;
  multiply_groups(
      cuda, from_packed,
      {.m = m,
       .n = n,
       .k = k,
       .a = {.f32 = a, .ld = lda, .stride = batch.a_group},
       .b = packed_operand(cuda, packed, side_by_side ? batch.planes * k : k, from_packed.b_group),
       .beta = accumulate ? 1.0f : 0.0f,
       .c = c,
       .ldc = ldc});
}

}  // namespace nmt::kernels
