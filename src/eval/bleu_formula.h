#pragma once

#include "eval/bleu.h"

#include <array>
#include <cmath>

namespace nmt {

double smoothing_value_of(const BleuOptions& options);

/// BLEU (Papineni et al. 2002, section 2.3) with the smoothing methods of Chen and Cherry 2014:
/// floor is method 1, add-k method 2, exp method 3 as in mteval-v13a.pl. Real is double for counts,
/// float for numpy's resampled sums. Returns the score, 0 to 100, and `precisions`, each 0 to 100.
template <class Real>
double bleu_formula(std::array<Real, bleu_order> correct, std::array<Real, bleu_order> total,
                    double brevity_penalty, const BleuOptions& options,
                    std::array<double, bleu_order>& precisions) {
  precisions = {};
  bool any = false;
  for (const Real c : correct) any = any || c != 0;
  if (!any) return 0;
  const double value = smoothing_value_of(options);
  double smoothed_zeros = 1;
  int orders = bleu_order;
  for (int n = 0; n < bleu_order; ++n) {
    if (options.smoothing == BleuSmoothing::add_k && n > 0) {
      correct[n] += static_cast<Real>(value);
      total[n] += static_cast<Real>(value);
    }
    if (total[n] == 0) break;
    if (options.effective_order) orders = n + 1;
    if (correct[n] != 0) {
      precisions[n] = static_cast<double>(Real{100} * correct[n] / total[n]);
      // Each further order without matches counts half of the previous one.
    } else if (options.smoothing == BleuSmoothing::exp) {
      smoothed_zeros *= 2;
      precisions[n] =
          static_cast<double>(Real{100} / (static_cast<Real>(smoothed_zeros) * total[n]));
    } else if (options.smoothing == BleuSmoothing::floor) {
      precisions[n] = static_cast<double>(static_cast<Real>(100.0 * value) / total[n]);
    }
  }
  double sum = 0;
  for (int n = 0; n < orders; ++n)
    sum += precisions[n] == 0 ? -9999999999.0 : std::log(precisions[n]);
  return brevity_penalty * std::exp(sum / orders);
}

inline double brevity_penalty(double hypothesis_length, double reference_length) {
  if (hypothesis_length >= reference_length) return 1.0;
  return hypothesis_length > 0 ? std::exp(1 - reference_length / hypothesis_length) : 0.0;
}

}  // namespace nmt
