// The packed layout of int8 weights (part.h): packing, copies by rows, and reading columns.

#include "core/error.h"
#include "core/threads/thread_pool.h"
#include "kernels/products/int8/gemm_int8.h"
#include "kernels/products/int8/part.h"
#include "kernels/products/int8/quantize.h"
#include "kernels/products/int8/sparse_row.h"
#include "kernels/products/select_columns.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace nmt::kernels {
namespace {

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

void copy_int8_rows(const Cpu& cpu, std::int64_t k, std::int64_t n, const std::byte* packed,
                    std::byte* rows) {
  const std::int64_t stride = rounded(n, sparse_columns);
  const auto* const panels = reinterpret_cast<const std::uint8_t*>(packed);
  cpu.pool->parallel_for(k, dot_depth, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      auto* const row = reinterpret_cast<std::uint8_t*>(rows) + i * stride;
      for (std::int64_t j = 0; j < n; ++j)
        row[j] =
            panels[j / dot_columns * panel_bytes(k) +
                   (i / dot_depth * dot_columns + j % dot_columns) * dot_depth + i % dot_depth];
      std::fill(row + n, row + stride, std::uint8_t{128});
    }
  });
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
