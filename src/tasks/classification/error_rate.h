#pragma once

#include <string>
#include <vector>

namespace nmt {

/// The error rate of a classifier with its 95 % interval by bootstrap.
struct ErrorRate {
  double percent = 0, half_width = 0;
  std::string details;       ///< counts
  std::string text() const;  ///< "error rate 12.40 ± 1.05 (248 of 2000)"
};

/// Compares labels with the right ones; both have as many, at least one.
ErrorRate error_rate(const std::vector<std::string>& labels,
                     const std::vector<std::string>& references);

}  // namespace nmt
