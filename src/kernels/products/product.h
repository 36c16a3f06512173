#pragma once

#include "kernels/backend.h"

#include <cstdint>

namespace nmt::kernels {

class ProductLibrary;

/// A product C[m,n] (+)= op(A) B on the calling thread, the shared inner part of the packed and the
/// training products. B is packed (see gemm.h), or stored as it is and packed block by block on the
/// way.
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  std::int64_t lda = 0;
  bool transpose_a = false;                    ///< A is stored [k,m]
  const float* packed = nullptr;               ///< the whole B in panels, or null:
  const std::uint16_t* packed_bf16 = nullptr;  ///< the same in bfloat16, or null:
  const float* b = nullptr;                    ///< [k,n]
  std::int64_t ldb = 0;
  bool transpose_b = false;  ///< B is stored [n,k]
  bool accumulate = false;
  float* c = nullptr;
  std::int64_t ldc = 0;
  const ProductLibrary* library = nullptr;  ///< asked first; null: our own tiles
};

/// Rows [m_begin, m_end) and columns [n_begin, n_end); n_begin is a multiple of packed_panel().
/// Every output is one multiply-add chain along k, whatever the part.
void product_part(const Product& p, std::int64_t m_begin, std::int64_t m_end, std::int64_t n_begin,
                  std::int64_t n_end);

/// The whole product, shared among the workers.
void run_product(const Cpu& cpu, const Product& p);

/// Lays columns [n_begin, n_end) and rows [k_begin, k_end) of op(B) out in panels: panel after
/// panel, each [k_end-k_begin][packed_panel()] floats, `panel_stride` apart, zeros in the columns
/// past n_end.
void pack_panels(bool transpose_b, std::int64_t k_begin, std::int64_t k_end, std::int64_t n_begin,
                 std::int64_t n_end, const float* b, std::int64_t ldb, float* packed,
                 std::int64_t panel_stride);

/// How a product is cut among workers: a grid of row parts and column parts.
struct Grid {
  int row_parts = 1, column_parts = 1;
};
/// The cheapest grid for these sizes; depends on nothing else.
Grid choose_grid(int workers, std::int64_t m, std::int64_t n, bool packed);
/// The part of worker `index` of `parts` of [0, n), a multiple of `grain` but the last.
struct Range {
  std::int64_t begin, end;
};
Range part_of(std::int64_t n, std::int64_t grain, int index, int parts);

}  // namespace nmt::kernels
