#pragma once

#include <string>
#include <vector>

namespace nmt {

/// The metric of a tagger's output: span F1 where the tags are those of spans (eval/labels.h), else
/// accuracy.
struct TaggingScore {
  std::string metric;        ///< "accuracy" or "span F1"
  double value = 0;          ///< percent
  double half_width = 0;     ///< of the 95 % interval by bootstrap over the sentences
  std::string details;       ///< counts, or precision and recall
  std::string text() const;  ///< "accuracy 93.52 ± 0.41 (23521 of 25150)"
};

/// Scores lines of tags separated by spaces. `tags`: all tags that the tagger has. Errors (data):
/// as sentence_counts() and Metric::row().
TaggingScore tagging_score(const std::vector<std::string>& tags,
                           const std::vector<std::string>& hypotheses,
                           const std::vector<std::string>& references);

}  // namespace nmt
