#include "kernels/products/gemm_int8.h"

#include "core/error.h"
#include "core/thread_pool.h"
#include "kernels/products/amx/self_check.h"
#include "kernels/products/amx/support.h"
#include "kernels/products/amx/tiled_dots.h"
#include "kernels/products/amx/tiles.h"
#include "kernels/products/int8/dot_tile.h"
#include "kernels/products/int8/part.h"
#include "kernels/products/int8/sparse_row.h"
#include "kernels/products/product.h"
#include "kernels/products/quantize.h"
#include "kernels/products/select_columns.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

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
  alignas(64) std::int32_t sums[SparseTiles::most_blocks * sparse_columns];
  for (std::int64_t j = n_begin; j < n_end;) {
    std::int64_t blocks = SparseTiles::most_blocks;
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
    alignas(64) std::int32_t sums[most_dot_rows * most_dot_panels * dot_columns];
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

bool has_tiles() {
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
  if (has_tiles() && rows.end - rows.begin >= min_tiled_rows && p.k > 0)
    return int8_part<TiledDots<AmxTiles>>(p, rows.begin, rows.end, columns.begin, columns.end);
#endif
  int8_part<VectorDots>(p, rows.begin, rows.end, columns.begin, columns.end);
}

// Column j of op(B) and its scale.
struct Column {
  Column(bool transpose_b, std::int64_t k, std::int64_t j, const float* b, std::int64_t ldb)
      : first(transpose_b ? b + j * ldb : b + j), stride(transpose_b ? 1 : ldb) {
    float most = 0.0f;
    for (std::int64_t i = 0; i < k; ++i) {
      const float weight = first[i * stride];
      if (!std::isfinite(weight))
        fail(ExitStatus::data, "a weight is {}: expected a finite value to quantize", weight);
      most = std::max(most, std::abs(weight));
    }
    scale = most / 127.0f;
    inverse = most >= 1e-36f ? 127.0f / most : 0.0f;
  }
  std::int8_t rounded(std::int64_t i) const {
    return static_cast<std::int8_t>(nearest(first[i * stride], inverse));
  }

  const float* first;
  std::int64_t stride;
  float scale, inverse;
};

// A group of a panel, [16][4] of q + 128, from `depth` rows of `columns` values; the rest is 0.
void store_rows(const std::int8_t* q, std::int64_t stride, std::int64_t columns, std::int64_t depth,
                std::uint8_t* to) {
  std::int8_t rows[dot_depth][dot_columns] = {};
  for (std::int64_t i = 0; i < depth; ++i)
    if (columns == dot_columns)
      std::memcpy(rows[i], q + i * stride, dot_columns);
    else
      std::memcpy(rows[i], q + i * stride, static_cast<std::size_t>(columns));
#if defined(__SSE2__)
  __m128i row[dot_depth];
  for (int i = 0; i < dot_depth; ++i)
    row[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[i]));
  const __m128i offset = _mm_set1_epi8(-128);
  const auto store = [&](int part, __m128i bytes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to) + part, _mm_xor_si128(bytes, offset));
  };
  const __m128i low01 = _mm_unpacklo_epi8(row[0], row[1]),
                low23 = _mm_unpacklo_epi8(row[2], row[3]),
                high01 = _mm_unpackhi_epi8(row[0], row[1]),
                high23 = _mm_unpackhi_epi8(row[2], row[3]);
  store(0, _mm_unpacklo_epi16(low01, low23));
  store(1, _mm_unpackhi_epi16(low01, low23));
  store(2, _mm_unpacklo_epi16(high01, high23));
  store(3, _mm_unpackhi_epi16(high01, high23));
#else
  for (int j = 0; j < dot_columns; ++j)
    for (int i = 0; i < dot_depth; ++i)
      to[j * dot_depth + i] = static_cast<std::uint8_t>(rows[i][j] + 128);
#endif
}

// The same from `columns` columns of `depth` values.
void store_columns(const std::int8_t* q, std::int64_t stride, std::int64_t columns,
                   std::int64_t depth, std::uint8_t* to) {
  for (std::int64_t j = 0; j < dot_columns; ++j) {
    std::uint32_t four = 0;
    if (j < columns && depth == dot_depth)
      std::memcpy(&four, q + j * stride, dot_depth);
    else if (j < columns)
      std::memcpy(&four, q + j * stride, static_cast<std::size_t>(depth));
    four ^= 0x80808080u;
    std::memcpy(to + j * dot_depth, &four, dot_depth);
  }
}

// Columns [begin, end) of pack_int8(), multiples of 16.
void pack_int8_panels(bool transpose_b, std::int64_t k, std::int64_t n, const std::int8_t* q,
                      std::int64_t ldq, const float* scales, std::int64_t begin, std::int64_t end,
                      std::byte* packed) {
  auto* values = reinterpret_cast<std::uint8_t*>(packed);
  float* out_scales = const_cast<float*>(scales_of(k, n, packed));
  const std::int64_t groups = rounded(k, dot_depth) / dot_depth;
  for (std::int64_t first = begin; first < end; first += dot_columns) {
    const std::int64_t columns = std::min<std::int64_t>(dot_columns, n - first);
    for (std::int64_t j = 0; j < dot_columns; ++j)
      out_scales[first + j] = j < columns ? scales[first + j] : 0.0f;
    std::uint8_t* panel = values + first / dot_columns * panel_bytes(k);
    for (std::int64_t group = 0; group < groups; ++group) {
      const std::int64_t row = group * dot_depth,
                         depth = std::min<std::int64_t>(dot_depth, k - row);
      std::uint8_t* const to = panel + group * dot_depth * dot_columns;
      if (transpose_b)
        store_columns(q + first * ldq + row, ldq, columns, depth, to);
      else
        store_rows(q + row * ldq + first, ldq, columns, depth, to);
    }
  }
}

void check_depth(std::int64_t k) {
  NMT_CHECK(k <= max_int8_depth,
            "int8 GEMM: inner dimension {} exceeds {}, the largest with exact sums", k,
            max_int8_depth);
}

// fill(column, scale, put) sets the scale of a column and calls put() for its k values.
template <class Fill>
void pack_columns(const Cpu& cpu, std::int64_t k, std::int64_t n, std::byte* packed,
                  const Fill& fill) {
  check_depth(k);
  auto* values = reinterpret_cast<std::uint8_t*>(packed);
  float* scales = const_cast<float*>(scales_of(k, n, packed));
  cpu.pool->parallel_for(
      rounded(n, dot_columns), dot_columns, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t j = begin; j < end; ++j) {
          std::uint8_t* column =
              values + j / dot_columns * panel_bytes(k) + j % dot_columns * dot_depth;
          const auto put = [&](std::int64_t i, int q) {
            column[i / dot_depth * dot_depth * dot_columns + i % dot_depth] =
                static_cast<std::uint8_t>(q + 128);
          };
          scales[j] = 0.0f;
          if (j < n) fill(j, scales[j], put);
          for (std::int64_t i = j < n ? k : 0; i < rounded(k, dot_depth); ++i) put(i, 0);
        }
      });
}

}  // namespace

const char* int8_instructions() {
  return has_tiles() ? "AMX and VNNI" : tiles().instructions;
}

std::int64_t packed_int8_size(std::int64_t k, std::int64_t n) {
  const std::int64_t columns = rounded(n, dot_columns);
  return columns / dot_columns * panel_bytes(k) +
         columns * static_cast<std::int64_t>(sizeof(float));
}

void round_int8(const Cpu& cpu, bool transpose_b, std::int64_t k, std::int64_t n, const float* b,
                std::int64_t ldb, std::int8_t* q, float* scales) {
  cpu.pool->parallel_for(n, dot_columns, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = begin; j < end; ++j) {
      const Column column(transpose_b, k, j, b, ldb);
      scales[j] = column.scale;
      for (std::int64_t i = 0; i < k; ++i)
        q[transpose_b ? j * k + i : i * n + j] = column.rounded(i);
    }
  });
}

void pack_int8(const Cpu& cpu, bool transpose_b, std::int64_t k, std::int64_t n, const float* b,
               std::int64_t ldb, std::byte* packed) {
  pack_columns(cpu, k, n, packed, [=](std::int64_t j, float& scale, const auto& put) {
    const Column column(transpose_b, k, j, b, ldb);
    scale = column.scale;
    for (std::int64_t i = 0; i < k; ++i) put(i, column.rounded(i));
  });
}

void pack_int8(const Cpu& cpu, bool transpose_b, std::int64_t k, std::int64_t n,
               const std::int8_t* q, std::int64_t ldq, const float* scales, std::byte* packed) {
  check_depth(k);
  cpu.pool->parallel_for(rounded(n, dot_columns), dot_columns,
                         [=](std::int64_t begin, std::int64_t end) {
                           pack_int8_panels(transpose_b, k, n, q, ldq, scales, begin, end, packed);
                         });
}

void pack_int8_rows(bool transpose_b, std::int64_t k, std::int64_t n, const std::int8_t* q,
                    std::int64_t ldq, const float* scales, std::byte* packed) {
  check_depth(k);
  pack_int8_panels(transpose_b, k, n, q, ldq, scales, 0, rounded(n, dot_columns), packed);
}

std::int64_t int8_rows_size(std::int64_t k, std::int64_t n) {
  const bool pays = zeros_pay(0, k, n) && k <= max_sparse_depth && sparse_tiles().of[0];
  return pays ? k * rounded(n, sparse_columns) : 0;
}

void copy_int8_rows(const Cpu& cpu, std::int64_t k, std::int64_t n, const std::byte* packed,
                    std::byte* rows) {
  const std::int64_t stride = rounded(n, sparse_columns);
  const Int8Product p{n, k, nullptr, 0, packed, nullptr, {}, nullptr, 0};
  cpu.pool->parallel_for(k, dot_depth, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      auto* const row = reinterpret_cast<std::uint8_t*>(rows) + i * stride;
      for (std::int64_t j = 0; j < n; ++j)
        row[j] =
            p.panel(j)[(i / dot_depth * dot_columns + j % dot_columns) * dot_depth + i % dot_depth];
      std::fill(row + n, row + stride, std::uint8_t{128});
    }
  });
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

void unpack_int8_column(std::int64_t k, std::int64_t n, std::int64_t column,
                        const std::byte* packed, float* out) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(packed) +
                     column / dot_columns * panel_bytes(k) + column % dot_columns * dot_depth;
  const float scale = scales_of(k, n, packed)[column];
  for (std::int64_t i = 0; i < k; ++i)
    out[i] =
        scale *
        static_cast<float>(
            static_cast<int>(from[i / dot_depth * dot_depth * dot_columns + i % dot_depth]) - 128);
}

void gather_int8(const Cpu& cpu, std::int64_t rows, std::int64_t k, std::int64_t n,
                 const std::int32_t* ids, const std::byte* packed, float* out) {
  cpu.pool->parallel_for(rows, 16, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      unpack_int8_column(k, n, ids[r], packed, out + r * k);
  });
}

void select_columns(const Cpu& cpu, std::int64_t k, std::int64_t n,
                    std::span<const std::int32_t> ids, const std::byte* packed, std::byte* out) {
  const auto chosen = static_cast<std::int64_t>(ids.size()),
             groups = rounded(k, dot_depth) / dot_depth;
  const float* scales = scales_of(k, n, packed);
  float* out_scales = const_cast<float*>(scales_of(k, chosen, out));
  constexpr std::int64_t step = dot_columns * dot_depth;
  cpu.pool->parallel_for(
      rounded(chosen, dot_columns), dot_columns, [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t j = begin; j < end; ++j) {
          std::byte* to = out + j / dot_columns * panel_bytes(k) + j % dot_columns * dot_depth;
          out_scales[j] = j < chosen ? scales[ids[j]] : 0.0f;
          if (j >= chosen) {
            for (std::int64_t i = 0; i < groups; ++i) std::memset(to + i * step, 128, dot_depth);
            continue;
          }
          const std::byte* from =
              packed + ids[j] / dot_columns * panel_bytes(k) + ids[j] % dot_columns * dot_depth;
          for (std::int64_t i = 0; i < groups; ++i)
            std::memcpy(to + i * step, from + i * step, dot_depth);
        }
      });
}

}  // namespace nmt::kernels
