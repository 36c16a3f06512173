#include "nmt/kernels/ensemble.h"

#include "nmt/core/thread_pool.h"
#include "nmt/kernels/math.h"

#include <cmath>

namespace nmt::kernels {

void combine_scores(const Cpu& cpu, std::int64_t rows, std::int64_t vocabulary, std::span<const MemberScores> members,
                    bool probabilities, float* out) {
  cpu.pool->parallel_for(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int64_t v = 0; v < vocabulary; ++v) {
        double sum = 0;
        for (const MemberScores& member : members) {
          const float log_prob = member.logits[row * vocabulary + v] - member.log_normalizer[row];
          sum += member.weight * static_cast<double>(probabilities ? math::exp(log_prob) : log_prob);
        }
        out[row * vocabulary + v] = static_cast<float>(probabilities ? std::log(sum) : sum);
      }
  });
}

}  // namespace nmt::kernels
