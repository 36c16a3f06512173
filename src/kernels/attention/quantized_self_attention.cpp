#include "kernels/attention/quantized_self_attention.h"

#include "core/threads/thread_pool.h"
#include "kernels/attention/quantized_head.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace nmt::kernels {
namespace {

// Queries whose weights are computed at once.
constexpr std::int64_t query_block = 48;

struct alignas(64) Line {
  std::byte bytes[64];
};

}  // namespace

void quantized_self_attention(const Cpu& cpu, const SelfAttention& a, const float* x, float* out) {
  const std::int64_t width = a.width(), joined = 3 * width, out_stride = a.sentences * width;
  cpu.pool->parallel_for(a.groups(), 1, [&](std::int64_t begin, std::int64_t end) {
    QuantizedHead::Scratch scratch;
    std::vector<float> rows;
    std::vector<Line> packed(
        static_cast<std::size_t>(QuantizedHead{a.steps, a.size, a.size}.bytes()) / sizeof(Line));
    std::vector<float> weights(static_cast<std::size_t>(std::min(query_block, a.steps) * a.steps));
    const float* sentence = nullptr;
    for (std::int64_t group = begin; group < end; ++group) {
      const std::int64_t b = group / a.heads, i = group % a.heads;
      const QuantizedHead head{a.lengths[b], a.size, a.size};
      if (group == begin || i == 0)
        sentence = adjacent_rows(head.length, joined, x + b * joined, a.sentences * joined, rows);
      const float *query = sentence + 3 * i * a.size, *key = query + a.size, *value = key + a.size;
      float* const to = out + group * a.size;
      head.pack(key, joined, value, joined, scratch, packed.data()->bytes);
      for (std::int64_t t = 0; t < head.length; t += query_block)
        head.attend(packed.data()->bytes, std::min(query_block, head.length - t),
                    query + t * joined, joined, weights.data(), head.length, to + t * out_stride,
                    out_stride);
      for (std::int64_t t = head.length; t < a.steps; ++t)
        std::fill_n(to + t * out_stride, a.size, 0.0f);
    }
  });
}

}  // namespace nmt::kernels
