#include "eval/metric.h"

#include "core/error.h"
#include "eval/bleu_formula.h"
#include "eval/chrf_formula.h"

#include <algorithm>
#include <cmath>

namespace nmt {
namespace {

// Row: hypothesis length, reference length, matches per order, n-grams per order.
class BleuMetric : public Metric {
 public:
  explicit BleuMetric(const BleuOptions& options) : options_(options) {}
  std::string name() const override { return "BLEU"; }
  std::string signature(int references, const std::string& trials) const override {
    return bleu_signature(options_, references, trials);
  }
  std::string verbose(const std::vector<std::int64_t>& sum) const override {
    return nmt::verbose(bleu_from_counts(counts(sum), options_));
  }
  std::vector<std::int64_t> row(const std::string& hypothesis,
                                const std::vector<std::string>& references) const override {
    const BleuCounts c = bleu_counts(hypothesis, references, options_);
    std::vector<std::int64_t> row{c.hypothesis_length, c.reference_length};
    row.insert(row.end(), c.correct.begin(), c.correct.end());
    row.insert(row.end(), c.total.begin(), c.total.end());
    return row;
  }
  double score(const std::vector<std::int64_t>& sum) const override {
    return bleu_from_counts(counts(sum), options_).score;
  }
  SampleScore score_of_floats(const std::vector<float>& sum) const override {
    std::array<float, bleu_order> correct{}, total{};
    std::copy_n(sum.begin() + 2, bleu_order, correct.begin());
    std::copy_n(sum.begin() + 2 + bleu_order, bleu_order, total.begin());
    std::array<double, bleu_order> precisions;
    const double penalty = brevity_penalty(sum[0], sum[1]);
    return {bleu_formula(correct, total, penalty, options_, precisions),
            false};  // sacreBLEU's last step gives a Python float
  }
  double score_of_integers(const std::vector<std::int64_t>& sum) const override {
    BleuOptions options = options_;
    if (options.smoothing == BleuSmoothing::add_k)
      options.smoothing_value = std::floor(smoothing_value_of(options));
    return bleu_from_counts(counts(sum), options).score;
  }

 private:
  static BleuCounts counts(const std::vector<std::int64_t>& sum) {
    BleuCounts c;
    c.hypothesis_length = sum[0];
    c.reference_length = sum[1];
    std::copy_n(sum.begin() + 2, bleu_order, c.correct.begin());
    std::copy_n(sum.begin() + 2 + bleu_order, bleu_order, c.total.begin());
    return c;
  }
  BleuOptions options_;
};

// Row: per order hypothesis n-grams, reference n-grams, matches.
class ChrfMetric : public Metric {
 public:
  explicit ChrfMetric(const ChrfOptions& options) : options_(options) {}
  std::string name() const override { return chrf_name(options_); }
  std::string signature(int references, const std::string& trials) const override {
    return chrf_signature(options_, references, trials);
  }
  std::string verbose(const std::vector<std::int64_t>&) const override { return ""; }
  std::vector<std::int64_t> row(const std::string& hypothesis,
                                const std::vector<std::string>& references) const override {
    const ChrfCounts c = chrf_counts(hypothesis, references, options_);
    std::vector<std::int64_t> row;
    for (int n = 0; n < options_.character_order + options_.word_order; ++n)
      row.insert(row.end(), c.orders[n].begin(), c.orders[n].end());
    return row;
  }
  double score(const std::vector<std::int64_t>& sum) const override {
    bool nothing = false;
    return chrf_formula(std::vector<double>(sum.begin(), sum.end()), options_, nothing);
  }
  SampleScore score_of_floats(const std::vector<float>& sum) const override {
    bool nothing = false;
    const double score = chrf_formula(sum, options_, nothing);
    return {score, !nothing};  // no match: sacreBLEU returns a Python 0.0
  }

 private:
  ChrfOptions options_;
};

}  // namespace

std::unique_ptr<Metric> bleu_metric(const BleuOptions& options) {
  return std::make_unique<BleuMetric>(options);
}
std::unique_ptr<Metric> chrf_metric(const ChrfOptions& options) {
  return std::make_unique<ChrfMetric>(options);
}

std::vector<std::int64_t> SentenceCounts::sum() const {
  std::vector<std::int64_t> total(columns, 0);
  for (std::size_t i = 0; i < values.size(); ++i) total[i % columns] += values[i];
  return total;
}

SentenceCounts sentence_counts(const Metric& metric, const std::vector<std::string>& hypotheses,
                               const std::vector<std::vector<std::string>>& references) {
  if (hypotheses.empty()) fail(ExitStatus::data, "no sentences to score");
  for (const auto& stream : references)
    if (stream.size() != hypotheses.size())
      fail(ExitStatus::data, "{} hypotheses for {} references", hypotheses.size(), stream.size());
  SentenceCounts counts;
  counts.sentences = hypotheses.size();
  std::vector<std::string> of_sentence(references.size());
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    for (std::size_t k = 0; k < references.size(); ++k) of_sentence[k] = references[k][i];
    const auto row = metric.row(hypotheses[i], of_sentence);
    counts.columns = row.size();
    counts.values.insert(counts.values.end(), row.begin(), row.end());
  }
  return counts;
}

}  // namespace nmt
