#pragma once

#include "kernels/attention.h"

#include <cstddef>
#include <cstdint>

namespace nmt::kernels {

// Keys and values of an encoded source in int8 (quantized_head.h): a decoding step reads a quarter
// of the bytes. Each sentence has its heads one after the other, over its own length, so a row of a
// batch does not depend on the others.

/// Bytes of a sentence of `steps` positions, a multiple of 64; a sentence with fewer positions uses
/// the first of them.
std::int64_t quantized_memory_bytes(std::int64_t steps, std::int64_t space, std::int64_t width,
                                    std::int64_t heads);
/// Quantizes a.keys and a.memory of all sentences to `to`, `stride` bytes per sentence, aligned to
/// 64 bytes.
void quantize_memory(const Cpu&, const Attention& a, std::int64_t stride, std::byte* to);

/// attention_row_forward() from a.quantized: one query [A] to sentence b, weights [heads,S] and
/// context [M].
void quantized_row_forward(const Attention& a, std::int64_t b, const float* query, float* weights,
                           float* context);

}  // namespace nmt::kernels
