#pragma once

// Units whose state is linear in the state before (linear_state in units/step.h), over sentences so
// long and few that a thread for each channel leaves most of the device idle. The steps are divided
// into chunks, which are computed at the same time:
//   1. each chunk from a state of 0: its last state b, and the product a of its factors,
//   2. the states between chunks, one chunk after the other: s = a s' + b,
//   3. each chunk from its first state, with its outputs.
// The backward pass does the same with the gradient of the state, from the last chunk to the first.
// (Scans of linear recurrences in two levels: Blelloch, "Prefix Sums and Their Applications", 1990,
// section 1.4.) The states differ from those of a loop over all steps by rounding alone.

#include "cuda/kernels/recurrent/unit.h"
#include "kernels/recurrent/recurrence.h"

namespace nmt::cuda {

struct Chunks {
  std::int64_t count = 1;   ///< 1: the recurrence is not divided
  std::int64_t length = 0;  ///< steps of each but the last one
};

/// The chunks of a recurrence on this device. There are as many chunks as the multiprocessors can
/// compute at once. Fewer than four would not pay for the two passes; the recurrence is then not
/// divided.
Chunks chunks_of(const Cuda& cuda, const kernels::Recurrence& a);

/// All steps; `first` describes step 0.
void chunks_forward(const Cuda& cuda, const kernels::Recurrence& a, const Chunks& chunks,
                    UnitSteps first);

/// Floats of the scratch memory of chunks_backward().
std::int64_t chunks_scratch(const kernels::Recurrence& a, const Chunks& chunks);
/// All steps, from a gradient of 0 after the last one.
void chunks_backward(const Cuda& cuda, const kernels::Recurrence& a,
                     const kernels::RecurrenceGradient& g, const Chunks& chunks, UnitSteps first);

}  // namespace nmt::cuda
