#pragma once

#include "config/enums/search_enums.h"
#include "kernels/handles.h"
#include "model/step_scorer.h"
#include "nmt/vocabulary.h"

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nmt {

/// A scorer that combines scorers with the same target vocabulary. Members may have different
/// source vocabularies; those encode the source text themselves. Attention is the weighted mean
/// over the members that use the source vocabulary of the first one. The scores of a row depend
/// only on that row if this holds for all members.
class EnsembleScorer : public StepScorer {
 public:
  struct Member {
    StepScorer* scorer = nullptr;
    const Vocabulary* source = nullptr;  ///< source vocabulary, if not that of the first member
    double weight = 1;
    /// Adds weight * log p to the score, without a share in the mean and in attention: shallow
    /// fusion of a language model (Gulcehre et al. 2015).
    bool added = false;
  };
  /// Whether scorers that share it have warned of a crop.
  using CropWarning = std::shared_ptr<std::atomic<bool>>;
  /// The members and what they point to must outlive the ensemble. `max_length`: maximum number of
  /// source tokens for members with their own vocabulary; a warning reports the first longer line.
  /// Scorers with one `crop_warning` warn once together; null: this scorer warns on its own.
  /// Errors: (usage) no member, a weight that is not positive, or an added member in a mean of
  /// probabilities; (failed) target vocabularies of different sizes.
  EnsembleScorer(const Cpu& cpu, std::vector<Member> members, Combination combination,
                 int max_length, CropWarning crop_warning = {});

  int vocabulary() const override;
  /// Error (failed): a member has its own source vocabulary and needs the text.
  std::unique_ptr<Decoding> begin(std::span<const std::vector<std::int32_t>> sources,
                                  bool want_attention) override;
  std::unique_ptr<Decoding> begin(std::span<const std::vector<std::int32_t>> sources,
                                  std::span<const std::string> lines, bool want_attention) override;

 private:
  /// The ids of the lines, at most max_length_ each.
  std::vector<std::vector<std::int32_t>> encode(const Vocabulary& source,
                                                std::span<const std::string> lines) const;

  Cpu cpu_;
  std::vector<Member> members_;  // weights of those not added sum to 1
  Combination combination_;
  int max_length_;
  CropWarning crop_warning_;
};

}  // namespace nmt
