#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace nmt {

/// How a window of sentences is cut into batches.
struct Batching {
  int mini_batch = 64;         ///< sentences a batch
  int maxi_batch = 100;        ///< batches a length-sorted window
  bool sort_by_length = true;  ///< within a window
  int max_length = 1000;       ///< tokens; longer sentences are cropped

  /// Errors (usage): a number below 1.
  void check() const;
  /// Sentences of a window.
  std::size_t window() const {
    return static_cast<std::size_t>(mini_batch) * static_cast<std::size_t>(maxi_batch);
  }
  /// Cuts `sentences` (indices into lengths, which are in tokens) into batches; longest first when
  /// sorting, else in order. Batches of long sentences hold fewer than mini_batch, so that memory
  /// is bounded.
  std::vector<std::vector<std::size_t>> cut(std::vector<std::size_t> sentences,
                                            std::span<const std::size_t> lengths) const;
};

}  // namespace nmt
