#include "kernels/softmax_loss.h"

#include "autograd/ops/losses.h"
#include "autograd/packed_weights.h"
#include "kernels/pointwise.h"
#include "kernels/products/gemm.h"

namespace nmt::ops {

void softmax_loss(Tape& tape, const Var& x, Parameter& table, Parameter* bias,
                  const Tensor& targets, float smoothing, const Tensor& sums) {
  const Context& context = tape.context();
  kernels::SoftmaxLoss args;
  args.rows = x->value.rows();
  args.width = x->value.width();
  args.vocabulary = table.shape[0];
  NMT_CHECK(args.width == table.shape[1], "readout rows of {} for a table {}",
            x->value.shape().text(), table.shape.text());
  NMT_CHECK(targets.elements() == args.rows, "{} targets for {} rows", targets.elements(),
            args.rows);
  args.x = x->value.f32();
  args.table = table.value.f32();
  args.bias = bias ? bias->value.f32() : nullptr;
  args.target = targets.data<std::int32_t>();
  args.smoothing = smoothing;
  args.cross_entropy = sums.data<double>();
  args.smoothed = sums.data<double>() + 1;
  Tensor dx;
  if (tape.recording()) {
    dx = context.empty(x->value.shape());
    args.dx = dx.f32();
    const Tape::ProductGradient dtable = tape.product_gradient(table, args.rows);
    args.dtable = dtable.values;
    args.dtable_beta = dtable.beta;
    args.dbias = bias ? bias->gradient.f32() : nullptr;
  }
  const double product =
      2.0 * static_cast<double>(args.rows * args.width) * static_cast<double>(args.vocabulary);
  const Region region(context.profile, "softmax and loss",
                      {tape.recording() ? 3 * product : product});
  dispatch(context, [&](const auto& backend) {
    args.rounded_x = tape.input(*x).bf16;
    const Rounded copy =
        tape.recording() ? Rounded() : Rounded(context, args.vocabulary, args.width, args.table);
    args.rounded_table = tape.recording() ? tape.weight(table).bf16 : copy.copy();
    const Tensor scratch = context.empty(
        {kernels::softmax_loss_scratch(backend, args.rows, args.width, args.vocabulary)});
    args.scratch = scratch.f32();
    kernels::softmax_loss(backend, args);
  });
  if (tape.recording()) tape.record([&tape, x, dx] { tape.accumulate(*x, dx); });
}

Tensor logits(Tape& tape, const Var& x, Parameter& table, Parameter* bias) {
  const Context& context = tape.context();
  const std::int64_t rows = x->value.rows(), k = x->value.width(), n = table.shape[0];
  Tensor y = context.empty({rows, n});
  const Region region(context.profile, "logits",
                      {2.0 * static_cast<double>(rows * n) * static_cast<double>(k)});
  const float* const b = bias ? bias->value.f32() : nullptr;
  if (table.is_packed()) {
    packed_product(context, rows, n, k, tape.input(*x), table.packed, b, y.f32());
    return y;
  }
  dispatch(context, [&](const auto& backend) {
    kernels::gemm(backend, false, true, rows, n, k, x->value.f32(), k, table.value.f32(), k, 0.0f,
                  y.f32(), n);
    if (b) kernels::add_bias(backend, rows, n, y.f32(), b, y.f32());
  });
  return y;
}

}  // namespace nmt::ops
