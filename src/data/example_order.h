#pragma once

#include "config/specs.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nmt {

/// The order in which the examples of a small corpus, held in memory, are batched: epoch after
/// epoch in random order, in windows of maxi_batch batches that are sorted by length and cut at
/// mini_batch_words padded words and mini_batch sentences. The batches of an epoch come in random
/// order, which depends only on lengths, settings, seed and number of the epoch.
class ExampleOrder {
 public:
  /// `lengths` of the examples, above 0, in words. Error (usage): mini-batch-words or maxi-batch
  /// below 1, mini-batch below 0.
  ExampleOrder(std::vector<int> lengths, const DataSpec& spec);

  /// The examples of the next batch.
  std::span<const std::size_t> next();
  /// As train::BatchSource.
  double epochs() const;
  std::string position() const;
  /// Error (data): not a position of this order.
  void restore(const std::string& position);

  /// The longest example, and the number of such examples in one batch.
  std::size_t longest() const;
  std::size_t longest_count() const;

 private:
  void begin_epoch(std::int64_t epoch);
  bool fits(std::size_t sentences, int length) const;

  std::vector<int> lengths_;
  int mini_batch_, mini_batch_words_, maxi_batch_;
  std::uint64_t seed_;
  std::int64_t epoch_ = 0;
  std::size_t batch_ = 0;  // next one of the epoch
  std::vector<std::vector<std::size_t>> batches_;
};

}  // namespace nmt
