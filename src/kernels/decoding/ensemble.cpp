#include "kernels/decoding/ensemble.h"

#include "core/thread_pool.h"

namespace nmt::kernels {

void combine_scores(const Cpu& cpu, std::int64_t rows, std::int64_t vocabulary,
                    std::span<const MemberScores> members, bool probabilities, float* out) {
  const int count = static_cast<int>(members.size());
  cpu.pool->parallel_for(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int64_t i = row * vocabulary; i < (row + 1) * vocabulary; ++i)
        out[i] = combined(members.data(), count, row, i, probabilities);
  });
}

}  // namespace nmt::kernels
