#pragma once

#include "kernels/backend.h"

#include <cstdint>
#include <span>

namespace nmt::kernels {

/// The target of a row that does not count: no loss, a gradient of zeros.
constexpr std::int32_t no_target = -1;

/// What softmax_loss reads and writes. Rows are real target tokens only (padding is left out
/// before), but for a few without a target, which round their number up.
struct SoftmaxLoss {
  std::int64_t rows = 0;                 ///< R
  std::int64_t width = 0;                ///< E
  std::int64_t vocabulary = 0;           ///< V
  const float* x = nullptr;              ///< [R,E] readout
  const float* table = nullptr;          ///< [V,E] output embedding
  const float* bias = nullptr;           ///< [V] or null
  const std::int32_t* target = nullptr;  ///< [R], symbols or no_target
  /// Label smoothing (Szegedy et al. 2016): (1-s) on the label, s/V on every symbol.
  float smoothing = 0.0f;
  float scale = 1.0f;               ///< factor on the gradients, 1/normalizer of the loss
  float* dx = nullptr;              ///< [R,E], written; null: no gradients wanted
  float* dtable = nullptr;          ///< [V,E], added to; null when dx is null
  float* dbias = nullptr;           ///< [V], added to, or null
  double* cross_entropy = nullptr;  ///< [1], added to: sum over rows of -log p(target)
  /// [1], added to: sum over rows of the smoothed loss less the smoothing's entropy.
  double* smoothed = nullptr;
  float* scratch = nullptr;  ///< softmax_loss_scratch() floats
};

/// Floats of scratch for these sizes: the logits of one chunk and what the products pack.
std::int64_t softmax_loss_scratch(const Cpu&, std::int64_t rows, std::int64_t width,
                                  std::int64_t vocabulary);
std::int64_t softmax_loss_scratch(const Cuda&, std::int64_t rows, std::int64_t width,
                                  std::int64_t vocabulary);

/// Products, softmax, label-smoothed cross-entropy and its gradients, chunk by chunk of rows, so
/// that the [R,V] logits never stand in memory whole. Fixed order of sums for a pool size.
void softmax_loss(const Cpu&, const SoftmaxLoss&);
void softmax_loss(const Cuda&, const SoftmaxLoss&);

/// sum q log q of the smoothed target distribution q: (1-s) + s/V on the label, s/V on the others
/// (Szegedy et al. 2016, section 7).
double smoothing_information(double smoothing, std::int64_t vocabulary);

/// log of the sum of exp over each row of logits [rows, vocabulary]: out[r]. A row's result does
/// not depend on the others.
NMT_KERNEL(log_sum_exp, std::int64_t rows, std::int64_t vocabulary, const float* logits,
           float* out);
/// Makes logits of products, in two passes: adds the bias [vocabulary] to each row, and writes the
/// maxima of its blocks, maxima [rows, top_k_blocks(vocabulary)] as top_k_of_blocks() reads them,
/// and out[r].
void finish_logits(const Cpu&, std::int64_t rows, std::int64_t vocabulary, const float* bias,
                   float* logits, float* maxima, float* out);
/// The same over columns[r] of each row alone, which are also picked: picked[r,j] = logits[r,
/// columns[r][j]], -infinity from there up to `width`. A row's result depends on its own columns'
/// logits and their order alone.
void log_sum_exp_of_columns(const Cpu&, std::int64_t vocabulary, const float* logits,
                            std::span<const std::span<const std::int32_t>> columns,
                            std::int64_t width, float* picked, float* out);

}  // namespace nmt::kernels
