#include "kernels/products/product.h"

#include "core/error.h"
#include "kernels/products/bf16/bf16_products.h"
#include "kernels/products/blocks/multiply.h"
#include "kernels/products/product_method.h"
#include "kernels/products/separate.h"

#include <cstring>

namespace nmt::kernels {
namespace {

// Bf16Products::pack where the processor multiplies no pairs.
void pack_rounded_floats(bool transpose_b, std::int64_t k, std::int64_t n_begin, std::int64_t n_end,
                         const float* b, std::int64_t ldb, float* packed) {
  float* const first = packed + n_begin * k;
  pack_panels(transpose_b, 0, k, n_begin, n_end, b, ldb, first, k * panel_width);
  round_to_bf16(first, k * packed_columns(n_end - n_begin));
}

}  // namespace

void product_part(const Product& p, std::int64_t m_begin, std::int64_t m_end, std::int64_t n_begin,
                  std::int64_t n_end) {
  if (m_begin >= m_end || n_begin >= n_end) return;
  if (p.k == 0) {
    if (!p.accumulate)
      for (std::int64_t r = m_begin; r < m_end; ++r)
        std::memset(p.c + r * p.ldc + n_begin, 0,
                    static_cast<std::size_t>(n_end - n_begin) * sizeof(float));
    return;
  }
  if (p.separate) return separate_product_part(p, m_begin, m_end, n_begin, n_end);
  if (p.library && p.library->takes(p)) return p.library->run(p, m_begin, m_end, n_begin, n_end);
  if (p.packed_bf16) return multiply_part<std::uint16_t>(p, m_begin, m_end, n_begin, n_end);
  if (p.rounded) return p.rounded->part(p, m_begin, m_end, n_begin, n_end);
  multiply_part<float>(p, m_begin, m_end, n_begin, n_end);
}

const Bf16Products& bf16_products() {
  if (const Bf16Products* const amx = amx_products()) return *amx;
#if defined(__AVX512F__) && defined(__AVX512BW__)
  static constexpr Bf16Products pairs{
      "bfloat16 by AVX-512 BF16", true, 1, column_elements<Pair>, pack_columns_of_pairs,
      multiply_part<Pair>};
  if (has_pairs()) return pairs;
#endif
  static constexpr Bf16Products floats{
      "inputs rounded to bfloat16 and multiplied in float32 (without AVX-512 BF16 this is slower "
      "than float32)",
      false,
      1,
      column_elements<float>,
      pack_rounded_floats,
      multiply_part<float>};
  return floats;
}

const Bf16Products* fast_bf16_products() {
  static const Bf16Products* const products = [] {
    const Bf16Products& all = bf16_products();
    const bool fast = &all == amx_products() || has_fast_pairs();
    return all.is_native && fast ? &all : nullptr;
  }();
  return products;
}

void pack_panels(bool transpose_b, std::int64_t k_begin, std::int64_t k_end, std::int64_t n_begin,
                 std::int64_t n_end, const float* b, std::int64_t ldb, float* packed,
                 std::int64_t panel_stride) {
  const std::int64_t whole = whole_panels(n_end - n_begin);
  if (!transpose_b) {
    for (std::int64_t n = 0; n < whole; n += panel_width)
      for (std::int64_t k = k_begin; k < k_end; ++k) {
        const float* from = b + k * ldb + n_begin + n;
        __builtin_prefetch(from + 16 * ldb);
        __builtin_prefetch(from + 16 * ldb + 16);
        std::memcpy(packed + n / panel_width * panel_stride + (k - k_begin) * panel_width, from,
                    panel_width * sizeof(float));
      }
  } else {
    // One cache line of k at a time, so that each line of B is read once.
    for (std::int64_t n = 0; n < whole; n += panel_width)
      for (std::int64_t k0 = k_begin; k0 < k_end; k0 += 16)
        for (std::int64_t k = k0; k < smaller(k0 + 16, k_end); ++k)
          for (std::int64_t j = 0; j < panel_width; ++j)
            packed[n / panel_width * panel_stride + (k - k_begin) * panel_width + j] =
                b[(n_begin + n + j) * ldb + k];
  }
  const std::int64_t left = n_end - n_begin - whole;
  if (left == 0) return;
  packed += whole / panel_width * panel_stride;
  b += transpose_b ? (n_begin + whole) * ldb : n_begin + whole;
  for (std::int64_t k = k_begin; k < k_end; ++k)
    for (std::int64_t j = 0; j < panel_width; ++j)
      packed[(k - k_begin) * panel_width + j] = j >= left     ? 0.0f
                                                : transpose_b ? b[j * ldb + k]
                                                              : b[k * ldb + j];
}

Product plain_product(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
                      std::int64_t k, const float* a, std::int64_t lda, const float* b,
                      std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  NMT_CHECK(beta == 0.0f || beta == 1.0f, "gemm: beta is {}, expected 0 or 1", beta);
  return {.m = m,
          .n = n,
          .k = k,
          .a = a,
          .lda = lda,
          .transpose_a = transpose_a,
          .b = b,
          .ldb = ldb,
          .transpose_b = transpose_b,
          .accumulate = beta != 0.0f,
          .c = c,
          .ldc = ldc};
}

Product packed_product(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                       std::int64_t lda, const PackedWeight& packed, bool accumulate, float* c,
                       std::int64_t ldc) {
  return {.m = m,
          .n = n,
          .k = k,
          .a = a,
          .lda = lda,
          .packed = packed.f32,
          .packed_bf16 = packed.bf16,
          .accumulate = accumulate,
          .c = c,
          .ldc = ldc};
}

}  // namespace nmt::kernels
