#pragma once

#include "eval/bleu.h"
#include "eval/chrf.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace nmt {

/// One score, as the Python programs compute it: `single` says that it is a float32 there, `value`
/// is exact in it.
struct SampleScore {
  double value = 0;
  bool single = false;
};

/// A metric as the programs and the significance tests see it: every sentence gives a row of
/// counts, and a sum of rows gives the score.
class Metric {
 public:
  virtual ~Metric() = default;
  /// "BLEU", "chrF2", "chrF2++"
  virtual std::string name() const = 0;
  /// `trials` stands behind the number of references: "bs:1000|seed:12345|", or nothing.
  virtual std::string signature(int references, const std::string& trials = "") const = 0;
  /// What a score says beside the number; empty for chrF.
  virtual std::string verbose(const std::vector<std::int64_t>& sum) const = 0;
  /// Counts of one hypothesis against its references (at least one); the same length for every
  /// sentence.
  virtual std::vector<std::int64_t> row(const std::string& hypothesis,
                                        const std::vector<std::string>& references) const = 0;
  /// Score of summed rows, 0 to 100.
  virtual double score(const std::vector<std::int64_t>& sum) const = 0;
  /// The same as sacreBLEU computes it from numpy's float32 sums (numpy 2: a Python number takes on
  /// the array's type).
  virtual SampleScore score_of_floats(const std::vector<float>& sum) const = 0;
  /// The same from an array of int64.
  virtual double score_of_integers(const std::vector<std::int64_t>& sum) const {
    return score(sum);
  }
};

std::unique_ptr<Metric> bleu_metric(const BleuOptions& options);
std::unique_ptr<Metric> chrf_metric(const ChrfOptions& options);

/// Rows of all sentences, one behind the other.
struct SentenceCounts {
  std::size_t sentences = 0, columns = 0;
  std::vector<std::int64_t> values;  ///< [sentences, columns]
  std::vector<std::int64_t> sum() const;
};

/// `references[k][i]` is sentence i of reference stream k. Errors (data): streams of different
/// lengths; no sentence at all.
SentenceCounts sentence_counts(const Metric& metric, const std::vector<std::string>& hypotheses,
                               const std::vector<std::vector<std::string>>& references);

}  // namespace nmt
