#include "kernels/attention/quantized_head.h"

#include "kernels/attention/softmax_row.h"
#include "kernels/products/int8/gemm_int8.h"
#include "kernels/products/int8/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace nmt::kernels {
namespace {

// Positions in one matrix of values: their sums are exact in int32.
constexpr std::int64_t max_positions = max_int8_depth / 4;

// Calls body(first, positions) for the matrices of values.
template <class Body>
void for_each_part(std::int64_t length, const Body& body) {
  for (std::int64_t first = 0; first < length; first += max_positions)
    body(first, std::min(max_positions, length - first));
}

void quantize(std::int64_t n, const float* x, const float* factors, std::int8_t* q) {
  for (std::int64_t i = 0; i < n; ++i) q[i] = static_cast<std::int8_t>(nearest(x[i], factors[i]));
}
// most[i] = max(most[i], |x[i]|), as bits.
void raise_to(std::int64_t n, const float* x, std::uint32_t* most) {
  for (std::int64_t i = 0; i < n; ++i) most[i] = std::max(most[i], magnitude_bits(x[i]));
}

}  // namespace

std::int64_t QuantizedHead::bytes() const {
  std::int64_t bytes = packed_int8_size(space, length);
  for_each_part(length, [&](std::int64_t, std::int64_t n) { bytes += packed_int8_size(n, width); });
  return bytes;
}

void QuantizedHead::pack(const float* keys, std::int64_t key_stride, const float* values,
                         std::int64_t value_stride, Scratch& scratch, std::byte* to) const {
  const auto most_of = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::size_t>(std::max(a, b));
  };
  scratch.most.resize(static_cast<std::size_t>(width));
  scratch.factors.resize(static_cast<std::size_t>(width));
  scratch.scales.resize(most_of(length, width));
  scratch.quantized.resize(static_cast<std::size_t>(length) * most_of(space, width));
  float *const factors = scratch.factors.data(), *const scales = scratch.scales.data();
  std::int8_t* const quantized = scratch.quantized.data();

  for (std::int64_t s = 0; s < length; ++s) {
    const float* key = keys + s * key_stride;
    const Step step(largest_magnitude(key, space));
    scales[s] = step.size;
    quantize_values(key, space, step.inverse, quantized + s * space);
  }
  pack_int8_rows(true, space, length, quantized, space, scales, to);
  to += packed_int8_size(space, length);

  for_each_part(length, [&](std::int64_t first, std::int64_t n) {
    const float* const from = values + first * value_stride;
    std::fill(scratch.most.begin(), scratch.most.end(), 0);
    for (std::int64_t s = 0; s < n; ++s)
      raise_to(width, from + s * value_stride, scratch.most.data());
    for (std::int64_t i = 0; i < width; ++i) {
      const Step step(std::bit_cast<float>(scratch.most[static_cast<std::size_t>(i)]));
      scales[i] = step.size;
      factors[i] = step.inverse;
    }
    for (std::int64_t s = 0; s < n; ++s)
      quantize(width, from + s * value_stride, factors, quantized + s * width);
    pack_int8_rows(false, n, width, quantized, width, scales, to);
    to += packed_int8_size(n, width);
  });
}

void QuantizedHead::attend(const std::byte* packed, std::int64_t rows, const float* queries,
                           std::int64_t query_stride, float* weights, std::int64_t weight_stride,
                           float* context, std::int64_t context_stride) const {
  gemm_int8_rows(rows, length, space, queries, query_stride, packed, false, weights, weight_stride);
  packed += packed_int8_size(space, length);
  const float scale = 1.0f / std::sqrt(static_cast<float>(space));
  for (std::int64_t r = 0; r < rows; ++r) softmax_row(length, scale, weights + r * weight_stride);
  for_each_part(length, [&](std::int64_t first, std::int64_t n) {
    gemm_int8_rows(rows, width, n, weights + first, weight_stride, packed, first > 0, context,
                   context_stride);
    packed += packed_int8_size(n, width);
  });
}

const float* adjacent_rows(std::int64_t length, std::int64_t width, const float* from,
                           std::int64_t stride, std::vector<float>& to) {
  to.resize(static_cast<std::size_t>(length * width));
  for (std::int64_t s = 0; s < length; ++s)
    std::copy_n(from + s * stride, width, to.data() + s * width);
  return to.data();
}

}  // namespace nmt::kernels
