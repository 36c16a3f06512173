#pragma once

#include "kernels/backend.h"
#include "model/step_scorer.h"
#include "nmt/vocabulary.h"

#include <string>
#include <vector>

namespace nmt {

/// How the members' distributions p_m become one, with weights w_m that sum to 1.
enum class Combination {
  log_probabilities,  ///< sum of w_m log p_m: Marian's rule; no distribution any more, its sum is
                      ///< at most 1
  probabilities       ///< log of the sum of w_m p_m
};
/// Errors (usage): an unknown name.
Combination combination_of(const std::string& name);

/// A scorer of scorers over one target vocabulary. Members may have other source vocabularies: they
/// cut the text of the source themselves. Attention is the mean over the members that read the
/// source by the first one's vocabulary, under their weights. The scores of a row depend on that
/// row alone if the members' do.
class EnsembleScorer : public StepScorer {
 public:
  struct Member {
    StepScorer* scorer = nullptr;
    const Vocabulary* source =
        nullptr;  ///< where it is not that of the first member: cuts the lines
    double weight = 1;
  };
  /// Members, and what they point to, outlive the ensemble. `max_length`: longest source that a
  /// vocabulary of its own gives a member. Errors (usage): no member, a weight that is not above 0;
  /// (failed): target vocabularies of different sizes.
  EnsembleScorer(const Cpu& cpu, std::vector<Member> members, Combination combination,
                 int max_length);

  int vocabulary() const override;
  /// Error (failed): a member needs the lines.
  std::unique_ptr<Decoding> begin(std::span<const std::vector<std::int32_t>> sources,
                                  bool want_attention) override;
  std::unique_ptr<Decoding> begin(std::span<const std::vector<std::int32_t>> sources,
                                  std::span<const std::string> lines, bool want_attention) override;

 private:
  Cpu cpu_;
  std::vector<Member> members_;  // weights sum to 1
  Combination combination_;
  int max_length_;
};

}  // namespace nmt
