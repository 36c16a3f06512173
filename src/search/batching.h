#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace nmt {

/// How a window of sentences is split into batches.
struct Batching {
  int mini_batch = 64;                ///< sentences per batch
  int maxi_batch = 100;               ///< batches per length-sorted window
  bool sort_by_length = true;         ///< within a window
  int max_length = 1000;              ///< tokens; longer sentences are cropped
  const char* option = "mini-batch";  ///< that sets mini_batch, for messages

  /// Errors (usage): a value below 1.
  void check() const;
  /// Sentences per window.
  std::size_t window() const {
    return static_cast<std::size_t>(mini_batch) * static_cast<std::size_t>(maxi_batch);
  }
  /// Splits `sentences` (indices into `lengths`, in tokens) into batches: longest first when
  /// sorting, else in order. Batches of long sentences have fewer than mini_batch sentences, which
  /// bounds the memory. For several `workers`, the last batches have fewer too, so that the workers
  /// finish at about the same time.
  std::vector<std::vector<std::size_t>> cut(std::vector<std::size_t> sentences,
                                            std::span<const std::size_t> lengths,
                                            int workers = 1) const;
};

}  // namespace nmt
