#include "kernels/products/gemm_int8.h"

#include "core/error.h"
#include "core/thread_pool.h"
#include "kernels/products/dot_tile.h"
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

constexpr std::int64_t quantized_bytes =
    96 * 1024;  // activations in one pass over the weights: stays in the second-level cache

std::int64_t rounded(std::int64_t n, std::int64_t to) {
  return (n + to - 1) / to * to;
}

// Packed layout: panels of 16 columns, each [k/4][16][4] of q + 128, then one scale per column.
std::int64_t panel_bytes(std::int64_t k) {
  return rounded(k, dot_depth) * dot_columns;
}
const float* scales_of(std::int64_t k, std::int64_t n, const std::byte* packed) {
  return reinterpret_cast<const float*>(packed +
                                        rounded(n, dot_columns) / dot_columns * panel_bytes(k));
}

// Quantizes one row of activations: out[stride] int8, zeros past k. Returns the step.
float quantize_row(const float* x, std::int64_t k, std::int64_t stride, std::int8_t* out,
                   std::int32_t& sum) {
  const Step step(largest_magnitude(x, k));
  sum = 0;
  std::fill(out + k, out + stride, std::int8_t{0});
  if (step.inverse == 0) {
    std::fill_n(out, k, std::int8_t{0});
    return step.size;
  }
  std::int32_t total = 0;
  for (std::int64_t i = 0; i < k; ++i) {
    const std::int32_t q = nearest(x[i], step.inverse);
    out[i] = static_cast<std::int8_t>(q);
    total += q;
  }
  sum = total;
  return step.size;
}

const DotTiles& tiles() {
  static const DotTiles chosen;
  return chosen;
}

struct QuantizedRows {
  const std::int8_t* values;
  std::int64_t stride;
  const float* steps;
  const std::int32_t* sums;
};

// What is added to the products.
struct Addend {
  bool accumulate;    // C
  const float* bias;  // [N] or null

  Addend at(std::int64_t column) const { return {accumulate, bias ? bias + column : nullptr}; }
};

// The results of a tile whose rows of sums stand `width` apart.
void finish_rows(std::int64_t rows, std::int64_t columns, std::int64_t width,
                 const std::int32_t* sums, const float* steps, const float* scales,
                 const Addend& addend, float* c, std::int64_t ldc) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const float step = steps[r];
    const std::int32_t* const from = sums + r * width;
    float* const to = c + r * ldc;
    if (addend.accumulate)
      for (std::int64_t j = 0; j < columns; ++j)
        to[j] = to[j] + static_cast<float>(from[j]) * (step * scales[j]);
    else if (addend.bias)
      for (std::int64_t j = 0; j < columns; ++j)
        to[j] = static_cast<float>(from[j]) * (step * scales[j]) + addend.bias[j];
    else
      for (std::int64_t j = 0; j < columns; ++j)
        to[j] = static_cast<float>(from[j]) * (step * scales[j]);
  }
}

void multiply(const QuantizedRows& a, std::int64_t rows, std::int64_t n_begin, std::int64_t n_end,
              std::int64_t n, std::int64_t k, const std::byte* packed, const Addend& addend,
              float* c, std::int64_t ldc) {
  const DotTiles& shape = tiles();
  const float* scales = scales_of(k, n, packed);
  const std::int64_t depth = a.stride / dot_depth, row_tiles = (rows + shape.rows - 1) / shape.rows;
  alignas(64) std::int32_t sums[most_dot_rows * most_dot_panels * dot_columns];
  for (std::int64_t j = n_begin, width = 0; j < n_end; j += width) {
    const bool whole = rounded(n_end, dot_columns) - j >= shape.panels * dot_columns;
    width = (whole ? shape.panels : 1) * dot_columns;
    const auto* panel =
        reinterpret_cast<const std::uint8_t*>(packed) + j / dot_columns * panel_bytes(k);
    for (std::int64_t t = 0; t < row_tiles; ++t) {
      const std::int64_t begin = rows * t / row_tiles, end = rows * (t + 1) / row_tiles;
      (whole ? shape.whole : shape.single)[end - begin - 1](depth, a.values + begin * a.stride,
                                                            a.stride, a.sums + begin, panel, sums);
      finish_rows(end - begin, std::min(width, n_end - j), width, sums, a.steps + begin, scales + j,
                  addend.at(j), c + begin * ldc + j, ldc);
    }
  }
}

// Rows [m_begin, m_end) and columns [n_begin, n_end) on the calling thread; n_begin is a multiple
// of 16.
void int8_part(std::int64_t m_begin, std::int64_t m_end, std::int64_t n_begin, std::int64_t n_end,
               std::int64_t n, std::int64_t k, const float* a, std::int64_t lda,
               const std::byte* packed, const Addend& addend, float* c, std::int64_t ldc) {
  constexpr std::int64_t max_rows = 256;
  alignas(64) std::int8_t values[quantized_bytes];
  float steps[max_rows];
  std::int32_t sums[max_rows];
  const std::int64_t stride = rounded(k, dot_depth);
  const std::int64_t group =
      std::clamp<std::int64_t>(quantized_bytes / std::max<std::int64_t>(stride, 1), 1, max_rows);
  for (std::int64_t m = m_begin; m < m_end; m += group) {
    const std::int64_t rows = std::min(group, m_end - m);
    for (std::int64_t r = 0; r < rows; ++r)
      steps[r] = quantize_row(a + (m + r) * lda, k, stride, values + r * stride, sums[r]);
    multiply({values, stride, steps, sums}, rows, n_begin, n_end, n, k, packed, addend, c + m * ldc,
             ldc);
  }
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

void gemm_int8(const Cpu& cpu, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
               std::int64_t lda, const std::byte* packed, bool accumulate, float* c,
               std::int64_t ldc, const float* bias) {
  NMT_CHECK(!(accumulate && bias), "int8 GEMM: a bias is added without C");
  const Addend addend{accumulate, bias};
  if (m <= 0 || n <= 0) return;
  ThreadPool& pool = *cpu.pool;
  if (pool.size() == 1 || m * n * k < 128 * 1024)
    return int8_part(0, m, 0, n, n, k, a, lda, packed, addend, c, ldc);
  const Grid grid = choose_grid(pool.size(), m, n, true);
  pool.run([&](int worker) {
    if (worker >= grid.row_parts * grid.column_parts) return;
    const Range rows = part_of(m, 1, worker % grid.row_parts, grid.row_parts);
    const Range columns =
        part_of(n, tiles().panels * dot_columns, worker / grid.row_parts, grid.column_parts);
    int8_part(rows.begin, rows.end, columns.begin, columns.end, n, k, a, lda, packed, addend, c,
              ldc);
  });
}

void gemm_int8_rows(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                    std::int64_t lda, const std::byte* packed, bool accumulate, float* c,
                    std::int64_t ldc) {
  int8_part(0, m, 0, n, n, k, a, lda, packed, {accumulate, nullptr}, c, ldc);
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
