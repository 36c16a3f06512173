#pragma once

#include "cuda/kernels/decoding/key.h"
#include "cuda/kernels/running_sum.h"
#include "kernels/decoding/top_k.h"

namespace nmt::cuda {

/// Joins the lists of a row: its k best elements and its log normalizer. All lanes of a warp call
/// it; lane p reads part p, and lane 0 writes.
__device__ __forceinline__ void join_row(const kernels::PartLists& lists, std::int64_t row,
                                         float* values, std::int32_t* columns,
                                         float* log_normalizers) {
  const unsigned lane = threadIdx.x % warp_size;
  const bool reads = lane < lists.parts;
  const std::int64_t list = row * lists.parts + lane;
  RunningSum running;
  if (reads) {
    running.maximum = lists.sums[2 * list];
    running.sum = lists.sums[2 * list + 1];
  }
  running.join_lanes();
  if (lane == 0) log_normalizers[row] = running.log_sum();
  int next = 0;
  bool done = false;  // after a NaN; the same in all lanes
  for (int rank = 0; rank < lists.k; ++rank) {
    const Key head = reads && next < lists.k && !done ? lists.keys[list * lists.k + next] : 0;
    const Key best = warp_reduce<MaxKey>(head);
    if (head == best) ++next;
    const float value = value_of(best);
    if (lane == 0) {
      values[row * lists.k + rank] = value;
      columns[row * lists.k + rank] = best != 0 ? index_of(best) : -1;
    }
    done = done || value != value;
  }
}

}  // namespace nmt::cuda
