#include "cuda/kernels/decoding/key.h"
#include "cuda/kernels/decoding/part_lists.h"
#include "kernels/decoding/beam.h"

namespace nmt::kernels {
namespace {

using namespace nmt::cuda;

// One block per sentence; its threads share the rows. The extensions of a row are sorted, so the
// best remaining one is the best of the rows' next ones: `ranks` counts those taken from each row.
__device__ int choose(const BeamStep& step, std::int32_t which, const BeamSentence& sentence,
                      int* ranks, BeamCandidate* choices) {
  const std::int32_t first = step.from.first[which], slots = step.from.slots[which];
  const int width = beam_width(step, sentence, step.to.slots[which]);
  for (int row = threadIdx.x; row < slots; row += blockDim.x) ranks[row] = 0;
  int taken = 0;
  for (; taken < width; ++taken) {
    Key own = 0;
    for (int row = threadIdx.x; row < slots; row += blockDim.x) {
      const BeamCandidate head = beam_extension(step, sentence, first + row, ranks[row]);
      if (head.token >= 0) own = MaxKey::join(own, key_of(head.sum, row));
    }
    const Key best = block_reduce<MaxKey>(own);
    if (best == 0) break;  // in all threads
    const int row = index_of(best);
    if (row % blockDim.x != threadIdx.x) continue;
    choices[taken] = beam_extension(step, sentence, first + row, ranks[row]);
    ++ranks[row];
  }
  __syncthreads();
  return taken;
}

// The key of the first row whose best extension is not a number; 0: none. If the best one is a
// number, so are the others.
__device__ Key find_fault(const BeamStep& step, std::int32_t which, const BeamSentence& sentence) {
  const std::int32_t first = step.from.first[which], slots = step.from.slots[which];
  Key found = 0;
  for (int row = threadIdx.x; row < slots; row += blockDim.x)
    if (!beam_sum_is_finite(beam_extension(step, sentence, first + row, 0)))
      found = MaxKey::join(found, key_of(0.0f, row));
  return block_reduce<MaxKey>(found);
}

// The scores of a sentence's rows, a warp for each row.
__device__ void join_rows(const BeamStep& step, std::int32_t which) {
  const BeamStep::Joined& to = step.joined;
  for (int row = threadIdx.x / warp_size; row < step.from.slots[which];
       row += blockDim.x / warp_size)
    join_row(to.lists, step.from.first[which] + row, to.logits, to.tokens, to.log_normalizers);
  __syncthreads();
}

__global__ void beam_step_kernel(BeamStep step) {
  NMT_DYNAMIC_SHARED(choices, BeamCandidate);                      // [beam]
  int* const ranks = reinterpret_cast<int*>(choices + step.beam);  // [beam]
  NMT_SHARED(live, int);
  const std::int32_t which = step.active[blockIdx.x];
  const BeamSentence sentence = step.state[which];
  if (step.joined.lists.keys && sentence.live > 0) join_rows(step, which);
  int taken = 0;
  Key fault = 0;
  if (sentence.live > 0) {  // in all threads
    fault = find_fault(step, which, sentence);
    if (fault == 0) taken = choose(step, which, sentence, ranks, choices);
  }
  BeamSentence next = sentence;
  if (threadIdx.x == 0) {
    if (fault != 0) {
      const BeamCandidate wrong =
          beam_extension(step, sentence, step.from.first[which] + index_of(fault), 0);
      next.live = 0;
      next.fault = score_not_finite;
      next.fault_at = wrong.token;
      next.fault_sum = wrong.sum;
    } else if (sentence.live > 0) {
      beam_update(step, choices, taken, next);
    }
    ++next.step;
    live = next.live;
  }
  __syncthreads();
  if (threadIdx.x == 0) step.state[which] = next;
  for (int i = threadIdx.x; i < step.to.slots[which]; i += blockDim.x)
    beam_write(step, which, sentence.step, choices, taken, live > 0, i);
}

}  // namespace

void beam_step(const Cuda& cuda, const BeamStep& step) {
  const auto beam = static_cast<std::size_t>(step.beam);
  const unsigned threads = threads_for(step.joined.lists.keys ? step.beam * warp_size : step.beam);
  launch(beam_step_kernel, static_cast<unsigned>(step.sentences), threads,
         beam * (sizeof(BeamCandidate) + sizeof(int)), cuda, step);
}

}  // namespace nmt::kernels
