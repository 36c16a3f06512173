#include "kernels/decoding/ensemble.h"

#include "core/threads/thread_pool.h"

#include <algorithm>

namespace nmt::kernels {
namespace {

// One row as combined() computes it without `probabilities`, to the bit, member by member, so that
// the loops over the vocabulary are vectorized.
void add_log_probabilities(std::int64_t vocabulary, std::span<const MemberScores> members,
                           std::int64_t row, float* out) {
  constexpr std::int64_t chunk = 512;  // the sums stay in the L1 cache
  double sums[chunk];
  for (std::int64_t first = 0; first < vocabulary; first += chunk) {
    const std::int64_t n = std::min(chunk, vocabulary - first);
    std::fill_n(sums, n, 0.0);
    for (const MemberScores& member : members) {
      const float* const logits = member.logits + row * vocabulary + first;
      const float normalizer = member.log_normalizer[row];
      const double weight = member.weight;
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i)
        sums[i] += weight * static_cast<double>(logits[i] - normalizer);
    }
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) out[first + i] = static_cast<float>(sums[i]);
  }
}

}  // namespace

void combine_scores(const Cpu& cpu, std::int64_t rows, std::int64_t vocabulary,
                    std::span<const MemberScores> members, bool probabilities, float* out) {
  const int count = static_cast<int>(members.size());
  cpu.pool->parallel_for(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      if (!probabilities) {
        add_log_probabilities(vocabulary, members, row, out + row * vocabulary);
        continue;
      }
      for (std::int64_t i = row * vocabulary; i < (row + 1) * vocabulary; ++i)
        out[i] = combined(members.data(), count, row, i, true);
    }
  });
}

}  // namespace nmt::kernels
