#pragma once

#include <cstdint>

namespace nmt {

/// What a kind of device offers to the code above the tensor floor. That code asks for these
/// properties and never for the kind of device; kernels are told apart by dispatch() alone. A
/// Context carries the backend that make_context() gave it.
struct Backend {
  /// Tensors lie in host memory: the host reads and writes them in place.
  bool host_memory = true;
  /// Weights frozen for inference may be bfloat16 or int8 (Context::weights).
  bool low_precision_weights = true;
  /// The output layer can be restricted to a shortlist of tokens.
  bool shortlists = true;
  /// Additive attention reads its keys as exponentials (kernels::attention_exp_keys).
  bool exponential_keys = true;
  /// The gradient of an embedding reads the positions of each token id (kernels::id_runs).
  bool id_runs = false;
  /// Two independent workloads can run at the same time (tensor/branches.h).
  bool concurrent_branches = false;
  /// Work of recurring shapes and addresses is replayed at less cost (tensor/repeat.h), so callers
  /// round shapes up and keep addresses fixed.
  bool replays = false;
  /// Padded source tokens that pass through the encoder at a time in inference.
  std::int64_t encoder_rows = 256;
  /// Hypotheses that pass through the decoder at a time.
  std::int64_t decoder_rows = 96;
  /// Floats of logits computed at a time in decoding; 0: a share of the output table's size.
  std::int64_t logits_block = 0;
};

inline constexpr Backend cpu_backend{};

// A GPU has memory for large parts, and a few large launches use it best.
inline constexpr Backend cuda_backend{.host_memory = false,
                                      .low_precision_weights = false,
                                      .shortlists = false,
                                      .exponential_keys = false,
                                      .id_runs = true,
                                      .concurrent_branches = true,
                                      .replays = true,
                                      .encoder_rows = 65536,
                                      .decoder_rows = 8192,
                                      .logits_block = std::int64_t{1} << 25};

}  // namespace nmt
