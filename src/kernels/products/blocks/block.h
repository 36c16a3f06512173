#pragma once

#include "kernels/products/blocks/row_copies.h"

// Blocks of B, packed or in place.

namespace nmt::kernels {
namespace {

std::int64_t whole_panels(std::int64_t columns) {
  return columns / panel_width * panel_width;
}
// Columns of the panels of a packed matrix.
std::int64_t packed_columns(std::int64_t columns) {
  return whole_panels(columns + panel_width - 1);
}

// Elements of a column of a packed B.
template <class B>
std::int64_t column_elements(std::int64_t k) {
  return (k + along_k_per<B> - 1) / along_k_per<B>;
}

// A block of B over one stretch of k. A partial last panel may be stored elsewhere.
template <class B>
struct Block {
  const B* panels;
  std::int64_t panel_stride, step;
  const B* edge;
};

// Columns [n, n+columns) of a packed B from element `first` of a column on, in place.
template <class B>
Block<B> packed_block(const Product& p, const B* packed, std::int64_t n, std::int64_t columns,
                      std::int64_t first) {
  const std::int64_t height = column_elements<B>(p.k);
  const B* at = packed + n * height + first * panel_width;
  return {at, height * panel_width, panel_width, at + whole_panels(columns) * height};
}

// Columns [n, n+columns) of B over a stretch of k: in place, or packed into `buffer`.
template <class B>
Block<B> take_block(const Product& p, std::int64_t n, std::int64_t columns, Stretch<B> stretch_,
                    bool direct, float* buffer) {
  const std::int64_t k = stretch_.k(), depth = stretch_.depth, whole = whole_panels(columns);
  if constexpr (std::is_same_v<B, std::uint16_t>) {
    return packed_block(p, p.packed_bf16, n, columns, k);
#if defined(__AVX512F__) && defined(__AVX512BW__)
  } else if constexpr (std::is_same_v<B, Pair>) {
    if (p.packed)
      return packed_block(p, reinterpret_cast<const Pair*>(p.packed), n, columns, stretch_.first);
    Pair* const pairs = reinterpret_cast<Pair*>(buffer);
    pack_pairs(p.transpose_b, k, stretch_.k_end(p), n, n + columns, p.b, p.ldb, pairs,
               depth * panel_width);
    return {pairs, depth * panel_width, panel_width, pairs + whole * depth};
#endif
  } else {
    if (p.packed) return packed_block(p, p.packed, n, columns, k);
    if (direct) {
      if (whole < columns)
        pack_panels(false, k, k + depth, n + whole, n + columns, p.b, p.ldb, buffer, 0);
      return {p.b + k * p.ldb + n, panel_width, p.ldb, buffer};
    }
    pack_panels(p.transpose_b, k, k + depth, n, n + columns, p.b, p.ldb, buffer,
                depth * panel_width);
    if (p.rounded) round_to_bf16(buffer, depth * packed_columns(columns));
    return {buffer, depth * panel_width, panel_width, buffer + whole * depth};
  }
}

}  // namespace
}  // namespace nmt::kernels
