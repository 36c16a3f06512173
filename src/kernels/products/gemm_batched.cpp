#include "kernels/products/gemm_batched.h"

#include "core/error.h"
#include "core/threads/thread_pool.h"
#include "kernels/products/bf16/bf16_products.h"
#include "kernels/products/gemm.h"
#include "kernels/products/product.h"
#include "kernels/products/product_method.h"

#include <numeric>

namespace nmt::kernels {
namespace {

// Number of distinct outputs; summed planes share one.
std::int64_t outputs(const GemmBatch& batch) {
  return batch.c_plane == 0 ? batch.groups : batch.groups * batch.planes;
}

// Rows [begin, end) of output i: one product, or a chain of one product per summed plane.
void output_part(const GemmBatch& batch, const Product& first, std::int64_t i, std::int64_t begin,
                 std::int64_t end) {
  const bool sum = batch.c_plane == 0;
  const std::int64_t g = sum ? i : i / batch.planes,
                     packed_product = packed_size(first.rounded, first.k, first.n);
  for (std::int64_t p = sum ? 0 : i % batch.planes, last = sum ? batch.planes : p + 1, from = p;
       p < last; ++p) {
    Product product = first;
    product.a += g * batch.a_group + p * batch.a_plane;
    if (first.packed)
      product.packed += (g * batch.planes + p) * packed_product;
    else
      product.b += g * batch.b_group + p * batch.b_plane;
    product.c += g * batch.c_group + p * batch.c_plane;
    product.accumulate = first.accumulate || p > from;
    product_part(product, begin, end, 0, first.n);
  }
}

// Distributes the outputs evenly over the threads; where they do not divide evenly, their rows are
// split as well.
void run_batch(const Cpu& cpu, const GemmBatch& batch, Product product) {
  product.rounded = bf16_products(cpu);
  product.separate = rounds_separately(cpu);
  ThreadPool& pool = *cpu.pool;
  const std::int64_t all = outputs(batch), workers = pool.size();
  if (product.m <= 0 || product.n <= 0) return;
  const bool small = batch.groups * batch.planes * product.m * product.n * product.k < 32 * 1024;
  const std::int64_t row_parts = small ? 1 : workers / std::gcd(all, workers),
                     jobs = all * row_parts;
  const auto job = [&](std::int64_t j) {
    const std::int64_t part = j % row_parts;
    output_part(batch, product, j / row_parts, product.m * part / row_parts,
                product.m * (part + 1) / row_parts);
  };
  if (workers == 1 || small) {
    for (std::int64_t j = 0; j < jobs; ++j) job(j);
    return;
  }
  pool.run([&](int worker) {
    for (std::int64_t j = jobs * worker / workers; j < jobs * (worker + 1) / workers; ++j) job(j);
  });
}

}  // namespace

void gemm_batched(const Cpu& cpu, const GemmBatch& batch, bool transpose_a, bool transpose_b,
                  std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda,
                  const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  run_batch(cpu, batch,
            plain_product(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, beta, c, ldc));
}

std::int64_t packed_batched_size(const GemmBatch& batch, std::int64_t k, std::int64_t n) {
  return batch.groups * batch.planes * packed_size(k, n);
}

std::int64_t packed_batched_size(const Cpu& cpu, const GemmBatch& batch, std::int64_t k,
                                 std::int64_t n) {
  return batch.groups * batch.planes * packed_size(cpu, k, n);
}

void pack_batched(const Cpu& cpu, const GemmBatch& batch, bool transpose_b, std::int64_t k,
                  std::int64_t n, const float* b, std::int64_t ldb, float* packed) {
  const std::int64_t size = packed_size(cpu, k, n), stride = k * packed_panel();
  cpu.pool->parallel_for(
      batch.groups * batch.planes, 1, [&, b](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const float* from =
              b + i / batch.planes * batch.b_group + i % batch.planes * batch.b_plane;
          if (const Bf16Products* const rounded = bf16_products(cpu))
            rounded->pack(transpose_b, k, 0, n, from, ldb, packed + i * size);
          else
            pack_panels(transpose_b, 0, k, 0, n, from, ldb, packed + i * size, stride);
        }
      });
}

void gemm_packed_batched(const Cpu& cpu, const GemmBatch& batch, std::int64_t m, std::int64_t n,
                         std::int64_t k, const float* a, std::int64_t lda, const float* packed,
                         bool accumulate, float* c, std::int64_t ldc) {
  run_batch(cpu, batch, packed_product(m, n, k, a, lda, packed, accumulate, c, ldc));
}

void gemm_packed_batched_rows(const Cpu& cpu, const GemmBatch& batch, std::int64_t m,
                              std::int64_t n, std::int64_t k, const float* a, std::int64_t lda,
                              const float* packed, bool accumulate, float* c, std::int64_t ldc) {
  Product product = packed_product(m, n, k, a, lda, packed, accumulate, c, ldc);
  product.rounded = bf16_products(cpu);
  product.separate = rounds_separately(cpu);
  for (std::int64_t i = 0; i < outputs(batch); ++i) output_part(batch, product, i, 0, m);
}

}  // namespace nmt::kernels
