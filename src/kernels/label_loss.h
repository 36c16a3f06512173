#pragma once

#include "kernels/handles.h"

#include <cstdint>

namespace nmt::kernels {

/// Arguments of label_loss(). A target is a label or no_target (kernels/softmax_loss.h).
struct LabelLoss {
  std::int64_t rows = 0;                 ///< R
  std::int64_t labels = 0;               ///< L
  const float* logits = nullptr;         ///< [R,L]
  const std::int32_t* target = nullptr;  ///< [R]
  /// Label smoothing s: probability (1-s) for the label plus s/L for every label.
  float smoothing = 0.0f;
  float* dlogits = nullptr;         ///< [R,L], written; null: no gradients
  double* cross_entropy = nullptr;  ///< [1], added to: sum over rows of -log p(target)
  /// [1], added to: sum over rows of the smoothed loss minus the entropy of the smoothed labels.
  double* smoothed = nullptr;
  double* scratch = nullptr;  ///< [2,R]
};

/// Softmax cross-entropy over a small number of labels, and its gradient.
NMT_KERNEL(label_loss, const LabelLoss&);

/// Arguments of crf_loss(), the linear-chain conditional random field (Lafferty et al. 2001). The
/// score of labels y is start[y_0] + sum emissions[t,y_t] + sum transitions[y_{t-1},y_t] +
/// end[y_{n-1}], n the length of the sentence.
struct CrfLoss {
  std::int64_t steps = 0;            ///< T
  std::int64_t sentences = 0;        ///< B
  std::int64_t labels = 0;           ///< L
  const float* emissions = nullptr;  ///< [T,B,L]
  /// [L+2,L]: from each label to each label, then the scores of first and of last labels.
  const float* transitions = nullptr;
  const std::int32_t* target = nullptr;   ///< [T,B]; padding is not read
  const std::int32_t* lengths = nullptr;  ///< [B], 1 to T
  float* demissions = nullptr;            ///< [T,B,L], written, 0 for padding; null: no gradients
  float* dtransitions = nullptr;          ///< [L+2,L], added to; null when demissions is null
  double* cross_entropy = nullptr;        ///< [1], added to: sum of -log p(labels of a sentence)
  double* smoothed = nullptr;             ///< [1], added to: the same
  double* scratch = nullptr;              ///< crf_scratch()
};
/// Doubles of scratch memory: forward and backward scores, log partition function and loss.
constexpr std::int64_t crf_scratch(std::int64_t steps, std::int64_t sentences,
                                   std::int64_t labels) {
  return 2 * sentences * (steps * labels + 1);
}

/// The negative log likelihood and its gradient by the forward-backward algorithm, in log space and
/// double precision. The result does not depend on the number of threads.
NMT_KERNEL(crf_loss, const CrfLoss&);

}  // namespace nmt::kernels
