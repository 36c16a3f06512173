#pragma once

#include "data/training_data.h"
#include "train/batch_source.h"

namespace nmt::app {

/// The BatchSource of a corpus.
class CorpusSource : public train::BatchSource {
 public:
  /// The data must outlive the source. The spec's `max_length` is used in messages.
  CorpusSource(TrainingData& data, const DataSpec& spec)
      : data_(data),
        max_length_(spec.max_length),
        in_words_(spec.max_length_unit == LengthUnit::words) {}
  const Batch& next() override;
  double epochs() const override { return data_.epochs(); }
  std::string position() const override { return data_.state().text(); }
  void restore(const std::string& position) override {
    data_.restore(LoaderState::parse(position));
  }
  std::vector<Batch> largest() override { return data_.largest_batches(); }

 private:
  TrainingData& data_;
  int max_length_;
  bool in_words_, told_ = false;
  Batch batch_;
};

}  // namespace nmt::app
