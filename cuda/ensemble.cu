#include "nmt/kernels/ensemble.h"
#include "nmt/kernels/math.h"

#include "cuda/elementwise.h"

namespace nmt::kernels {

using namespace nmt::cuda;

namespace {

struct Members {
  MemberScores member[most_members];
  int count = 0;
};

}  // namespace

void combine_scores(const Cuda& cuda, std::int64_t rows, std::int64_t vocabulary, std::span<const MemberScores> members,
                    bool probabilities, float* out) {
  NMT_CHECK(members.size() <= most_members, "an ensemble of {} models; at most {} are possible on CUDA", members.size(),
            most_members);
  Members all;
  for (const MemberScores& member : members) all.member[all.count++] = member;
  each(cuda, rows * vocabulary, [=] __device__(std::int64_t i) {
    double sum = 0;
    for (int m = 0; m < all.count; ++m) {
      const MemberScores& member = all.member[m];
      const float log_prob = member.logits[i] - member.log_normalizer[i / vocabulary];
      sum += member.weight * static_cast<double>(probabilities ? math::exp(log_prob) : log_prob);
    }
    out[i] = static_cast<float>(probabilities ? log(sum) : sum);
  });
}

}  // namespace nmt::kernels
