#pragma once

#include "kernels/handles.h"
#include "kernels/products/bfloat16.h"

#include <cstdint>
#include <span>

namespace nmt::kernels {

/// Target of a padding row: no loss, zero gradient.
constexpr std::int32_t no_target = -1;

/// Arguments of softmax_loss(). Rows are the target tokens without padding, except for a few rows
/// of no_target that round up their number.
struct SoftmaxLoss {
  std::int64_t rows = 0;         ///< R
  std::int64_t width = 0;        ///< E
  std::int64_t vocabulary = 0;   ///< V
  const float* x = nullptr;      ///< [R,E] readout
  const float* table = nullptr;  ///< [V,E] output embedding
  /// x and the table rounded where products read that (kernels/products/product_input.h), else
  /// null.
  const Bfloat16* rounded_x = nullptr;
  const Bfloat16* rounded_table = nullptr;
  const float* bias = nullptr;           ///< [V] or null
  const std::int32_t* target = nullptr;  ///< [R], token ids or no_target
  /// Label smoothing s (Szegedy et al. 2016): probability (1-s) for the label plus s/V for every
  /// token.
  float smoothing = 0.0f;
  float scale = 1.0f;               ///< factor of the gradients: 1 / normalizer of the loss
  float* dx = nullptr;              ///< [R,E], written; null: no gradients
  float* dtable = nullptr;          ///< [V,E], added to dtable_beta times it; null when dx is null
  float dtable_beta = 1.0f;         ///< 0: overwritten, if there are rows
  float* dbias = nullptr;           ///< [V], added to, or null
  double* cross_entropy = nullptr;  ///< [1], added to: sum over rows of -log p(target)
  /// [1], added to: sum over rows of the smoothed loss minus the entropy of the smoothed labels.
  double* smoothed = nullptr;
  float* scratch = nullptr;  ///< softmax_loss_scratch() floats
};

/// Scratch size in floats: the logits of one chunk and packed matrices.
std::int64_t softmax_loss_scratch(const Cpu&, std::int64_t rows, std::int64_t width,
                                  std::int64_t vocabulary);
std::int64_t softmax_loss_scratch(const Cuda&, std::int64_t rows, std::int64_t width,
                                  std::int64_t vocabulary);

/// Output layer, softmax, label-smoothed cross-entropy and its gradients, in chunks of rows, so
/// that the [R,V] logits are never materialized. The order of the sums is fixed for a given pool
/// size and machine.
void softmax_loss(const Cpu&, const SoftmaxLoss&);
void softmax_loss(const Cuda&, const SoftmaxLoss&);

/// sum q log q, where q is the smoothed target distribution: (1-s) + s/V for the label, s/V for the
/// other tokens (Szegedy et al. 2016, section 7).
double smoothing_information(double smoothing, std::int64_t vocabulary);

/// out[r] = log sum exp of row r of logits [rows, vocabulary]. A row's result does not depend on
/// the others.
NMT_KERNEL(log_sum_exp, std::int64_t rows, std::int64_t vocabulary, const float* logits,
           float* out);
/// Completes logits in two passes: adds the bias [vocabulary] to each row, and writes log sum exp
/// to out[r] and the block maxima that top_k_of_blocks() reads to maxima [rows,
/// top_k_blocks(vocabulary)].
void finish_logits(const Cpu&, std::int64_t rows, std::int64_t vocabulary, const float* bias,
                   float* logits, float* maxima, float* out);
/// log_sum_exp() over columns[r] of each row. Also gathers picked[r,j] = logits[r, columns[r][j]],
/// with -infinity from there to `width`. A row's result depends only on the logits of its own
/// columns and their order.
void log_sum_exp_of_columns(const Cpu&, std::int64_t vocabulary, const float* logits,
                            std::span<const std::span<const std::int32_t>> columns,
                            std::int64_t width, float* picked, float* out);

}  // namespace nmt::kernels
