#pragma once

#include "data/batch.h"

#include <cstdint>

namespace nmt {

/// n rounded up to a multiple of 2, 4 or 8, as far as this adds at most an eighth and the multiple
/// is at most `largest`.
int round_length(int n, int largest);

/// `tokens` rounded up to whole eighths of `padded`, the tokens of the padded batch: what a GPU
/// computes, so that batches of one padded shape are mostly one shape (CudaDevice::repeat) for at
/// most an eighth more work in the softmax.
std::int64_t round_tokens(std::int64_t tokens, std::int64_t padded);

/// The batch with more padding, so that fewer shapes occur and recurring work can be replayed
/// (Backend::replays): source steps and sentences are rounded up to multiples of at most 8, target
/// steps to multiples of at most 4. Added sentences have one source token and no target, so they
/// contribute nothing to the loss and its gradients. Dropout masks stay those of the batch. The
/// shares of several processes get the same shape (Batch::of_shares), so that the processes replay
/// the same batches.
Batch in_round_shape(const Batch& batch);

}  // namespace nmt
