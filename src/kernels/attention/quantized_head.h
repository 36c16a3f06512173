#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nmt::kernels {

/// Keys and values of one head and one sentence in int8, for dot-product attention of models with
/// int8 weights: two matrices packed for int8 products (products/int8/gemm_int8.h), keys with one
/// scale per position and values with one scale per channel. Queries and weights are quantized as
/// rows of int8 products are.
struct QuantizedHead {
  std::int64_t length = 0;  ///< S, positions
  std::int64_t space = 0;   ///< channels of keys and queries
  std::int64_t width = 0;   ///< channels of values

  /// Bytes of keys and values, a multiple of 64.
  std::int64_t bytes() const;

  struct Scratch {
    std::vector<std::uint32_t> most;
    std::vector<float> factors, scales;
    std::vector<std::int8_t> quantized;
  };
  /// Quantizes keys [S,space] and values [S,width] with rows `key_stride` and `value_stride` apart
  /// to `to`, aligned to 64 bytes. A non-finite key makes the scores of its position NaN, a
  /// non-finite value its channel of all contexts.
  void pack(const float* keys, std::int64_t key_stride, const float* values,
            std::int64_t value_stride, Scratch& scratch, std::byte* to) const;

  /// weights [rows,S] = softmax(query . key / sqrt(space)), context [rows,width] = weights values,
  /// from queries [rows,space]; rows are `.._stride` apart. A row does not depend on the others.
  void attend(const std::byte* packed, std::int64_t rows, const float* queries,
              std::int64_t query_stride, float* weights, std::int64_t weight_stride, float* context,
              std::int64_t context_stride) const;
};

/// Copies `length` rows of `width` floats, `stride` apart, to adjacent rows and returns them. Heads
/// are packed from such a copy of a sentence: rows that are a large power of two apart displace
/// each other in the caches.
const float* adjacent_rows(std::int64_t length, std::int64_t width, const float* from,
                           std::int64_t stride, std::vector<float>& to);

}  // namespace nmt::kernels
