#pragma once

#include "autograd/parameter.h"
#include "autograd/tape.h"

namespace nmt::ops {

// Output layers and losses. In shapes, a leading [..] is any number of rows.

/// Output layer and loss of x [R,E] with table [V,E], tied or not (kernels/softmax_loss.h); targets
/// i32 [R]. The gradient is that of the summed smoothed loss. Adds to sums f64 [2], on the device:
/// -log p(target), and the label-smoothed loss minus the entropy of the smoothed labels.
void softmax_loss(Tape& tape, const Var& x, Parameter& table, Parameter* bias,
                  const Tensor& targets, float smoothing, const Tensor& sums);
/// Softmax cross-entropy of logits [..,L] with a small number of labels; targets i32 [..], labels
/// or kernels::no_target. Gradient and sums as softmax_loss(); sums f64 [1] has the smoothed loss
/// alone.
void label_loss(Tape& tape, const Var& logits, const Tensor& targets, float smoothing,
                const Tensor& sums);
/// Negative log likelihood of a linear-chain CRF (kernels/label_loss.h): emissions [T,B,L],
/// transitions [L+2,L], targets i32 [T,B], lengths i32 [B]. Adds it to both sums.
void crf_loss(Tape& tape, const Var& emissions, Parameter& transitions, const Tensor& targets,
              const Tensor& lengths, const Tensor& sums);
/// Logits [R,V], for search.
Tensor logits(Tape& tape, const Var& x, Parameter& table, Parameter* bias);

}  // namespace nmt::ops
