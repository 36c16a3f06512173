#pragma once

#include "kernels/products/int8/quantize.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

// Parts of an int8 product (gemm_int8.h) on the calling thread: rows are quantized some at a time
// and multiplied by the tiles of an instruction set. Everything here has internal linkage, because
// the including file is compiled for several instruction sets.

namespace nmt::kernels {
namespace {

constexpr int dot_columns = 16;  // columns of a panel
constexpr int dot_depth = 4;     // adjacent k of a column
/// Activations in one pass over the weights, such as 64 rows with k = 1,536: stays in the
/// second-level cache.
constexpr std::int64_t quantized_bytes = 112 * 1024;
constexpr std::int64_t max_quantized_rows = 256;

constexpr std::int64_t rounded(std::int64_t n, std::int64_t to) {
  return (n + to - 1) / to * to;
}

// Packed layout: panels of 16 columns, each [k/4][16][4] of q + 128, then one scale per column.
inline std::int64_t panel_bytes(std::int64_t k) {
  return rounded(k, dot_depth) * dot_columns;
}
inline const float* scales_of(std::int64_t k, std::int64_t n, const std::byte* packed) {
  return reinterpret_cast<const float*>(packed +
                                        rounded(n, dot_columns) / dot_columns * panel_bytes(k));
}

/// What is added to the products.
struct Addend {
  bool accumulate;    ///< C
  const float* bias;  ///< [N] or null
};

struct Int8Product {
  std::int64_t n, k;
  const float* a;  ///< [m,k]
  std::int64_t lda;
  const std::byte* packed;
  const std::byte* by_rows;  ///< the weights again (sparse_row.h), or null
  Addend addend;
  float* c;  ///< [m,n]
  std::int64_t ldc;

  const std::uint8_t* panel(std::int64_t column) const {
    return reinterpret_cast<const std::uint8_t*>(packed) + column / dot_columns * panel_bytes(k);
  }
};

/// Some rows of A: values [rows][stride], and the step and the sum of each row.
struct QuantizedRows {
  std::int64_t count;
  const std::int8_t* values;
  std::int64_t stride;
  const float* steps;
  const std::int32_t* sums;
};

// Quantizes one row of activations: out[k] int8, then zeros up to `stride`. Returns the step.
inline float quantize_row(const float* x, std::int64_t k, std::int64_t stride, std::int8_t* out,
                          std::int32_t& sum) {
  const Step step(largest_magnitude(x, k));
  sum = 0;
  std::fill(out + k, out + stride, std::int8_t{0});
  if (step.inverse == 0) {
    std::fill_n(out, k, std::int8_t{0});
    return step.size;
  }
  sum = quantize_values(x, k, step.inverse, out);
  return step.size;
}

/// Sums of some rows and columns of C, [rows][width]; `column` is the first of C, `columns` of the
/// width are used. `row_sums`: the sums of the rows of A, if the sums still contain the weights'
/// offset of 128; else null.
struct Int8Sums {
  std::int64_t rows, column, columns, width;
  const std::int32_t* sums;
  const std::int32_t* row_sums;
};

/// finish_rows() of `columns` columns, a constant where it is one.
template <class Columns>
[[gnu::always_inline]] inline void finish_columns(const Int8Product& p, const Int8Sums& part,
                                                  Columns columns, const float* steps, float* c) {
  const float* const scales = scales_of(p.k, p.n, p.packed) + part.column;
  const float* const bias = p.addend.bias ? p.addend.bias + part.column : nullptr;
  for (std::int64_t r = 0; r < part.rows; ++r) {
    const float step = steps[r];
    const std::int32_t excess = part.row_sums ? 128 * part.row_sums[r] : 0;
    const std::int32_t* const from = part.sums + r * part.width;
    float* const to = c + r * p.ldc;
    const auto value = [&](std::int64_t j) {
      return static_cast<float>(from[j] - excess) * (step * scales[j]);
    };
    if (p.addend.accumulate)
      for (std::int64_t j = 0; j < columns; ++j) to[j] = to[j] + value(j);
    else if (bias)
      for (std::int64_t j = 0; j < columns; ++j) to[j] = value(j) + bias[j];
    else
      for (std::int64_t j = 0; j < columns; ++j) to[j] = value(j);
  }
}

/// Writes C from the sums; `c` is the first element of theirs, `steps` are those of the rows.
inline void finish_rows(const Int8Product& p, const Int8Sums& part, const float* steps, float* c) {
  if (part.columns == 4 * dot_columns)
    finish_columns(p, part, std::integral_constant<std::int64_t, 4 * dot_columns>(), steps, c);
  else if (part.columns == 2 * dot_columns)
    finish_columns(p, part, std::integral_constant<std::int64_t, 2 * dot_columns>(), steps, c);
  else
    finish_columns(p, part, part.columns, steps, c);
}

/// Rows [m_begin, m_end) and columns [n_begin, n_end); n_begin is a multiple of 16. Dots is the
/// instruction set: Dots::stride(k), bytes of a quantized row; Dots::row_unit, rows that it reads
/// at once; Dots::arrange(k, row), which reorders a row; Dots::multiply(p, rows, n_begin, n_end,
/// c).
template <class Dots>
void int8_part(const Int8Product& p, std::int64_t m_begin, std::int64_t m_end, std::int64_t n_begin,
               std::int64_t n_end) {
  alignas(64) std::int8_t values[quantized_bytes];
  float steps[max_quantized_rows];
  std::int32_t sums[max_quantized_rows];
  const std::int64_t stride = Dots::stride(p.k);
  std::int64_t group = std::clamp<std::int64_t>(quantized_bytes / std::max<std::int64_t>(stride, 1),
                                                1, max_quantized_rows);
  // Whole units, and pairs of them, which tiles of AMX multiply at once.
  for (const std::int64_t unit : {2 * Dots::row_unit, Dots::row_unit})
    if (group > unit) {
      group -= group % unit;
      break;
    }
  for (std::int64_t m = m_begin; m < m_end; m += group) {
    const std::int64_t rows = std::min(group, m_end - m);
    for (std::int64_t r = 0; r < rows; ++r) {
      std::int8_t* const row = values + r * stride;
      steps[r] = quantize_row(p.a + (m + r) * p.lda, p.k, stride, row, sums[r]);
      Dots::arrange(p.k, row);
    }
    // Rows that complete the last tile.
    const std::int64_t unit_rows = std::min(group, rounded(rows, Dots::row_unit));
    std::fill(values + rows * stride, values + unit_rows * stride, std::int8_t{0});
    Dots::multiply(p, {rows, values, stride, steps, sums}, n_begin, n_end, p.c + m * p.ldc);
  }
}

}  // namespace
}  // namespace nmt::kernels
