#pragma once

#include "kernels/handles.h"
#include "kernels/products/packed.h"

#include <cstdint>

namespace nmt::kernels {

class ProductMethod;
struct Bf16Products;

/// A product C[m,n] (+)= op(A) op(B): the common core of the packed and the training GEMM. B is
/// packed (gemm.h), or row-major and packed block by block on the fly.
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  std::int64_t lda = 0;
  bool transpose_a = false;                    ///< A is stored [k,m]
  const float* packed = nullptr;               ///< B in panels of pack(), or null
  const std::uint16_t* packed_bf16 = nullptr;  ///< B in bfloat16 panels, or null
  const float* b = nullptr;                    ///< [k,n]
  std::int64_t ldb = 0;
  bool transpose_b = false;  ///< B is stored [n,k]
  bool accumulate = false;
  float* c = nullptr;
  std::int64_t ldc = 0;
  const ProductMethod* library = nullptr;  ///< used where it is faster; null: own tiles only
  /// Rounds the inputs to bfloat16 (ProductMethod::bfloat16(), bfloat16x3()); `packed` is of
  /// pack() with the same value. Null: the inputs are not rounded.
  const Bf16Products* rounded = nullptr;
  bool separate = false;  ///< computed by separate_product_part() (separate.h)
};

/// The product of plain matrices. Error: beta is neither 0 nor 1.
Product plain_product(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
                      std::int64_t k, const float* a, std::int64_t lda, const float* b,
                      std::int64_t ldb, float beta, float* c, std::int64_t ldc);
/// The product A B with B in panels of float32 or bfloat16.
Product packed_product(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                       std::int64_t lda, const PackedWeight& packed, bool accumulate, float* c,
                       std::int64_t ldc);

/// Computes rows [m_begin, m_end) and columns [n_begin, n_end) on the calling thread; n_begin is a
/// multiple of packed_panel(). Every output is one chain of multiply-adds along k, however the
/// product is split.
void product_part(const Product& p, std::int64_t m_begin, std::int64_t m_end, std::int64_t n_begin,
                  std::int64_t n_end);

/// Computes the whole product on all threads.
void run_product(const Cpu& cpu, const Product& p);

/// Packs columns [n_begin, n_end) and rows [k_begin, k_end) of op(B): consecutive panels of
/// [k_end-k_begin][packed_panel()] floats, `panel_stride` apart, with zeros in the columns past
/// n_end.
void pack_panels(bool transpose_b, std::int64_t k_begin, std::int64_t k_end, std::int64_t n_begin,
                 std::int64_t n_end, const float* b, std::int64_t ldb, float* packed,
                 std::int64_t panel_stride);

/// How a product is split over threads: row parts x column parts.
struct Grid {
  int row_parts = 1, column_parts = 1;
};
/// The cheapest grid for these sizes. It depends only on the arguments.
Grid choose_grid(int workers, std::int64_t m, std::int64_t n, bool packed);
/// Part `index` of `parts` of [0, n). The size of every part but the last is a multiple of `grain`.
struct Range {
  std::int64_t begin, end;
};
Range part_of(std::int64_t n, std::int64_t grain, int index, int parts);

}  // namespace nmt::kernels
