#include "cuda/kernels/elementwise.h"
#include "kernels/decoding/ensemble.h"

namespace nmt::kernels {

using namespace nmt::cuda;

namespace {

struct Members {
  MemberScores member[max_members];
  int count = 0;
};

}  // namespace

void combine_scores(const Cuda& cuda, std::int64_t rows, std::int64_t vocabulary,
                    std::span<const MemberScores> members, bool probabilities, float* out) {
  NMT_CHECK(members.size() <= max_members,
            "an ensemble of {} models; at most {} are possible on CUDA", members.size(),
            max_members);
  Members all;
  for (const MemberScores& member : members) all.member[all.count++] = member;
  each_of_rows(cuda, rows, vocabulary, [=] __device__(std::int64_t row, std::int32_t column) {
    const std::int64_t i = row * vocabulary + column;
    out[i] = combined(all.member, all.count, row, i, probabilities);
  });
}

}  // namespace nmt::kernels
