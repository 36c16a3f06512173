#pragma once

#include "eval/metric.h"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

/// ROUGE-1, ROUGE-2 and ROUGE-L (Lin 2004): overlap of words, of word pairs, and the longest common
/// subsequence.
enum class RougeType { rouge1, rouge2, rouge_l };

template <>
struct EnumNames<RougeType> {
  static constexpr std::array<std::string_view, 3> names{"rouge1", "rouge2", "rougeL"};
};

/// Precision, recall and their harmonic mean, 0 to 1.
struct RougeScore {
  double precision = 0, recall = 0, f1 = 0;
};

/// The tokens of PyPI's rouge-score without stemming: runs of a-z and 0-9 of the lowercased line.
std::vector<std::string> rouge_tokens(std::string_view line);
/// The score of one hypothesis against its references; that of the reference with the highest F1.
RougeScore rouge_score(RougeType type, const std::string& hypothesis,
                       const std::vector<std::string>& references);
/// The mean of the sentences' scores. The score of the metric is the F1, 0 to 100.
std::unique_ptr<Metric> rouge_metric(RougeType type);

}  // namespace nmt
