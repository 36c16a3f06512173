#include "kernels/products/gemm.h"

#include "core/error.h"
#include "core/threads/thread_pool.h"
#include "kernels/pointwise.h"
#include "kernels/products/bf16/bf16_products.h"
#include "kernels/products/product.h"
#include "kernels/products/product_method.h"
#include "kernels/products/tile.h"

#include <algorithm>

namespace nmt::kernels {

void gemm(const Cpu& cpu, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
          std::int64_t k, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
          float beta, float* c, std::int64_t ldc) {
  Product product = plain_product(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, beta, c, ldc);
  product.library = cpu.products;
  product.rounded = bf16_products(cpu);
  product.separate = rounds_separately(cpu);
  if (m > 0 && n > 0) run_product(cpu, product);
}

std::int64_t packed_panel() {
  return panel_width;
}

std::int64_t packed_size(std::int64_t k, std::int64_t n) {
  return (n + panel_width - 1) / panel_width * panel_width * k;
}

std::int64_t packed_size(const Bf16Products* products, std::int64_t k, std::int64_t n) {
  return products ? packed_size(std::max(k, products->column_elements(k)), n) : packed_size(k, n);
}

std::int64_t packed_size(const Cpu& cpu, std::int64_t k, std::int64_t n) {
  return packed_size(bf16_products(cpu), k, n);
}

void pack(const Cpu& cpu, bool transpose_b, std::int64_t k, std::int64_t n, const float* b,
          std::int64_t ldb, float* packed) {
  cpu.pool->parallel_for(n, panel_width, [&](std::int64_t begin, std::int64_t end) {
    if (const Bf16Products* const rounded = bf16_products(cpu))
      return rounded->pack(transpose_b, k, begin, end, b, ldb, packed);
    pack_panels(transpose_b, 0, k, begin, end, b, ldb, packed + begin * k, k * panel_width);
  });
}

void gemm_packed(const Cpu& cpu, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                 std::int64_t lda, const float* packed, bool accumulate, float* c,
                 std::int64_t ldc) {
  Product product = packed_product(m, n, k, a, lda, packed, accumulate, c, ldc);
  product.rounded = bf16_products(cpu);
  product.separate = rounds_separately(cpu);
  if (m > 0 && n > 0) run_product(cpu, product);
}

void gemm_bias(const Cpu& cpu, std::int64_t rows, std::int64_t n, std::int64_t k, const float* x,
               const float* w, const float* bias, float* y) {
  gemm(cpu, false, false, rows, n, k, x, k, w, n, 0.0f, y, n);
  add_bias(cpu, rows, n, y, bias, y);
}

void gemm_packed_bias(const Cpu& cpu, std::int64_t rows, std::int64_t n, std::int64_t k,
                      const float* x, const float* packed, const float* bias, float* y) {
  gemm_packed(cpu, rows, n, k, x, k, packed, false, y, n);
  add_bias(cpu, rows, n, y, bias, y);
}

void gemm_packed_rows(const Cpu& cpu, std::int64_t m, std::int64_t n, std::int64_t k,
                      const float* a, std::int64_t lda, const float* packed, bool accumulate,
                      float* c, std::int64_t ldc) {
  Product product = packed_product(m, n, k, a, lda, packed, accumulate, c, ldc);
  product.rounded = bf16_products(cpu);
  product.separate = rounds_separately(cpu);
  product_part(product, 0, m, 0, n);
}

void unpack_column(std::int64_t k, std::int64_t column, const float* packed, float* out) {
  const float* panel = packed + column / panel_width * panel_width * k + column % panel_width;
  for (std::int64_t i = 0; i < k; ++i) out[i] = panel[i * panel_width];
}

}  // namespace nmt::kernels
