#pragma once

#include "data/batch.h"
#include "data/example_order.h"
#include "train/batch_source.h"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace nmt {

/// Training batches of examples in memory, in the order of ExampleOrder.
class ExampleBatches : public train::BatchSource {
 public:
  /// The batch of some examples, by number.
  using MakeBatch = std::function<Batch(std::span<const std::size_t> examples)>;
  /// With a share, every batch is that part of the full batch.
  ExampleBatches(std::vector<int> lengths, const DataSpec& spec, const RankSlice& share,
                 MakeBatch make)
      : order_(std::move(lengths), spec), share_(share), make_(std::move(make)) {}

  const Batch& next() override { return batch_ = share_of(order_.next()); }
  double epochs() const override { return order_.epochs(); }
  std::string position() const override { return order_.position(); }
  void restore(const std::string& position) override { order_.restore(position); }
  std::vector<Batch> largest() override {
    return {share_of(std::vector<std::size_t>(order_.longest_count(), order_.longest()))};
  }

 private:
  Batch share_of(std::span<const std::size_t> examples) const {
    Batch batch = make_(examples);
    batch.lines.assign(examples.begin(), examples.end());
    return share_.size > 1 ? take(batch, share_) : batch;
  }

  ExampleOrder order_;
  RankSlice share_;
  MakeBatch make_;
  Batch batch_;
};

}  // namespace nmt
