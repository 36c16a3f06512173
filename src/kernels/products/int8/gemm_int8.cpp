#include "kernels/products/int8/gemm_int8.h"

#include "core/error.h"
#include "core/threads/thread_pool.h"
#include "kernels/products/amx/self_check.h"
#include "kernels/products/amx/support.h"
#include "kernels/products/amx/tiled_dots.h"
#include "kernels/products/amx/tiles.h"
#include "kernels/products/int8/dot_tile.h"
#include "kernels/products/int8/part.h"
#include "kernels/products/int8/sparse_row.h"
#include "kernels/products/product.h"

#include <algorithm>

namespace nmt::kernels {
namespace {

const DotTiles& tiles() {
  static const DotTiles chosen;
  return chosen;
}

const SparseTiles& sparse_tiles() {
  static const SparseTiles chosen(tiles().has_vnni);
  return chosen;
}

// Columns [n_begin, n_end) of one row of C, from the values that are not zero; n_begin is a
// multiple of 64. Returns whether it was worth it.
bool multiply_nonzeros(const Int8Product& p, const QuantizedRows& a, std::int64_t n_begin,
                       std::int64_t n_end, float* c) {
  if (!zeros_pay(count_nonzeros(a.values, p.k), p.k, n_end - n_begin)) return false;
  const SparseTiles& shape = sparse_tiles();
  const Nonzeros x(a.values, p.k);
  const std::int64_t stride = rounded(p.n, sparse_columns), last = rounded(n_end, sparse_columns);
  const auto* const rows = reinterpret_cast<const std::uint8_t*>(p.by_rows);
  alignas(64) std::int32_t sums[SparseTiles::max_blocks * sparse_columns];
  for (std::int64_t j = n_begin; j < n_end;) {
    std::int64_t blocks = SparseTiles::max_blocks;
    while (!shape.of[blocks - 1] || (blocks > 1 && j + blocks * sparse_columns > last)) --blocks;
    shape.of[blocks - 1](x, rows + j, stride, a.sums[0], sums);
    const std::int64_t end = std::min(n_end, j + blocks * sparse_columns);
    for (const std::int32_t* from = sums; j < end; from += sparse_columns, j += sparse_columns)
      finish_rows(p, {1, j, std::min(sparse_columns, end - j), sparse_columns, from, nullptr},
                  a.steps, c + j);
  }
  return true;
}

// The instruction set of int8_part(): tiles of vectors.
struct VectorDots {
  static constexpr std::int64_t row_unit = 1;
  static std::int64_t stride(std::int64_t k) { return rounded(k, dot_depth); }
  static void arrange(std::int64_t, std::int8_t*) {}

  // Columns [n_begin, n_end) of some rows of C.
  static void multiply(const Int8Product& p, const QuantizedRows& a, std::int64_t n_begin,
                       std::int64_t n_end, float* c) {
    if (p.by_rows && a.count == 1 && multiply_nonzeros(p, a, n_begin, n_end, c)) return;
    const DotTiles& shape = tiles();
    const std::int64_t depth = a.stride / dot_depth,
                       row_tiles = (a.count + shape.rows - 1) / shape.rows;
    alignas(64) std::int32_t sums[max_dot_rows * max_dot_panels * dot_columns];
    for (std::int64_t j = n_begin, width = 0; j < n_end; j += width) {
      const bool whole = rounded(n_end, dot_columns) - j >= shape.panels * dot_columns;
      width = (whole ? shape.panels : 1) * dot_columns;
      for (std::int64_t t = 0; t < row_tiles; ++t) {
        const std::int64_t begin = a.count * t / row_tiles, end = a.count * (t + 1) / row_tiles;
        (whole ? shape.whole : shape.single)[end - begin - 1](
            depth, a.values + begin * a.stride, a.stride, a.sums + begin, p.panel(j), sums);
        finish_rows(p, {end - begin, j, std::min(width, n_end - j), width, sums, nullptr},
                    a.steps + begin, c + begin * p.ldc + j);
      }
    }
  }
};

bool has_int8_tiles() {
#if defined(__AVX512F__) && defined(__AVX512BW__)
  static const bool has =
      tiles().has_vnni && amx_to_use().int8 && tiles_pass_check<AmxTiles, TileElements::int8>();
  return has;
#else
  return false;
#endif
}

void multiply_part(const Int8Product& p, Range rows, Range columns) {
#if defined(__AVX512F__) && defined(__AVX512BW__)
  if (has_int8_tiles() && rows.end - rows.begin >= min_tiled_rows && p.k > 0)
    return int8_part<TiledDots<AmxTiles>>(p, rows.begin, rows.end, columns.begin, columns.end);
#endif
  int8_part<VectorDots>(p, rows.begin, rows.end, columns.begin, columns.end);
}

}  // namespace

const char* int8_instructions() {
  return has_int8_tiles() ? "AMX and VNNI" : tiles().instructions;
}

std::int64_t int8_rows_size(std::int64_t k, std::int64_t n) {
  const bool pays = zeros_pay(0, k, n) && k <= max_sparse_depth && sparse_tiles().of[0];
  return pays ? k * rounded(n, sparse_columns) : 0;
}

void gemm_int8(const Cpu& cpu, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
               std::int64_t lda, const std::byte* packed, bool accumulate, float* c,
               std::int64_t ldc, const float* bias, const std::byte* by_rows) {
  NMT_CHECK(!(accumulate && bias), "int8 GEMM: a bias is added without C");
  if (m > 1) by_rows = nullptr;
  const Int8Product p{n, k, a, lda, packed, by_rows, {accumulate, bias}, c, ldc};
  if (m <= 0 || n <= 0) return;
  ThreadPool& pool = *cpu.pool;
  if (pool.size() == 1 || m * n * k < 128 * 1024) return multiply_part(p, {0, m}, {0, n});
  const Grid grid = choose_grid(pool.size(), m, n, true);
  pool.run([&](int worker) {
    if (worker >= grid.row_parts * grid.column_parts) return;
    const Range rows = part_of(m, 1, worker % grid.row_parts, grid.row_parts);
    const std::int64_t unit = by_rows ? sparse_columns : tiles().panels * dot_columns;
    const Range columns = part_of(n, unit, worker / grid.row_parts, grid.column_parts);
    multiply_part(p, rows, columns);
  });
}

void gemm_int8_rows(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                    std::int64_t lda, const std::byte* packed, bool accumulate, float* c,
                    std::int64_t ldc) {
  multiply_part({n, k, a, lda, packed, nullptr, {accumulate, nullptr}, c, ldc}, {0, m}, {0, n});
}

}  // namespace nmt::kernels
