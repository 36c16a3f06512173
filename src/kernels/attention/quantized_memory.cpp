#include "kernels/attention/quantized_memory.h"

#include "core/threads/thread_pool.h"
#include "kernels/attention/quantized_head.h"

#include <algorithm>
#include <vector>

namespace nmt::kernels {
namespace {

QuantizedHead head_of(const Attention& a, std::int64_t b) {
  return {a.lengths[b], a.space / a.heads, a.width / a.heads};
}

}  // namespace

std::int64_t quantized_memory_bytes(std::int64_t steps, std::int64_t space, std::int64_t width,
                                    std::int64_t heads) {
  return heads * QuantizedHead{steps, space / heads, width / heads}.bytes();
}

void quantize_memory(const Cpu& cpu, const Attention& a, std::int64_t stride, std::byte* to) {
  cpu.pool->parallel_for(a.sentences, 1, [&](std::int64_t begin, std::int64_t end) {
    QuantizedHead::Scratch scratch;
    std::vector<float> key_rows, value_rows;
    for (std::int64_t b = begin; b < end; ++b) {
      const QuantizedHead head = head_of(a, b);
      const float *keys = adjacent_rows(head.length, a.space, a.keys + b * a.space,
                                        a.sentences * a.space, key_rows),
                  *values = adjacent_rows(head.length, a.width, a.memory + b * a.width,
                                          a.sentences * a.width, value_rows);
      for (std::int64_t i = 0; i < a.heads; ++i)
        head.pack(keys + i * head.space, a.space, values + i * head.width, a.width, scratch,
                  to + b * stride + i * head.bytes());
    }
  });
}

void quantized_row_forward(const Attention& a, std::int64_t b, const float* query, float* weights,
                           float* context) {
  const QuantizedHead head = head_of(a, b);
  const std::byte* packed = a.quantized + b * a.quantized_stride;
  for (std::int64_t i = 0; i < a.heads; ++i, packed += head.bytes(), weights += a.steps) {
    head.attend(packed, 1, query + i * head.space, head.space, weights, a.steps,
                context + i * head.width, head.width);
    std::fill(weights + head.length, weights + a.steps, 0.0f);
  }
}

}  // namespace nmt::kernels
