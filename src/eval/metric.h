#pragma once

#include "eval/bleu.h"
#include "eval/chrf.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace nmt {

/// A score as sacreBLEU computes it. `single`: it is a float32 there; `value` represents it
/// exactly.
struct SampleScore {
  double value = 0;
  bool single = false;
};

/// Interface of metrics for the programs and the significance tests: every sentence gives a row of
/// counts, and a sum of rows gives the score.
class Metric {
 public:
  virtual ~Metric() = default;
  /// For example "BLEU", "chrF2" or "chrF2++".
  virtual std::string name() const = 0;
  /// The sacreBLEU signature; `trials`, "bs:1000|seed:12345|" or empty, follows the number of
  /// references.
  virtual std::string signature(int references, const std::string& trials = "") const = 0;
  /// Details of a score: precisions, brevity penalty and lengths; empty for chrF.
  virtual std::string verbose(const std::vector<std::int64_t>& sum) const = 0;
  /// Counts of one hypothesis against at least one reference. Every row has the same length.
  virtual std::vector<std::int64_t> row(const std::string& hypothesis,
                                        const std::vector<std::string>& references) const = 0;
  /// The score of summed rows, 0 to 100.
  virtual double score(const std::vector<std::int64_t>& sum) const = 0;
  /// The score as sacreBLEU computes it from float32 sums (numpy 2: Python scalars adopt the
  /// array's dtype).
  virtual SampleScore score_of_floats(const std::vector<float>& sum) const = 0;
  /// The score as sacreBLEU computes it from int64 sums.
  virtual double score_of_integers(const std::vector<std::int64_t>& sum) const {
    return score(sum);
  }
};

std::unique_ptr<Metric> bleu_metric(const BleuOptions& options);
std::unique_ptr<Metric> chrf_metric(const ChrfOptions& options);

/// The rows of all sentences.
struct SentenceCounts {
  std::size_t sentences = 0, columns = 0;
  std::vector<std::int64_t> values;  ///< [sentences, columns]
  std::vector<std::int64_t> sum() const;
};

/// `references[k][i]` is sentence i of reference stream k. Errors (data): streams of different
/// lengths; no sentences.
SentenceCounts sentence_counts(const Metric& metric, const std::vector<std::string>& hypotheses,
                               const std::vector<std::vector<std::string>>& references);

}  // namespace nmt
