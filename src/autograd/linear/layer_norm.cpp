// Layer normalization, alone and fused with a linear layer or the end of a residual layer.

#include "kernels/layer_norm.h"

#include "autograd/dropout.h"
#include "autograd/linear/dense.h"
#include "autograd/ops/linear.h"
#include "autograd/traffic.h"
#include "kernels/pointwise.h"

#include <utility>

namespace nmt::ops {
namespace {

void check_norm(const Parameter& gain, std::int64_t width, const Shape& rows) {
  NMT_CHECK(gain.shape.elements() == width, "{} {} cannot scale rows of {}", gain.name,
            gain.shape.text(), rows.text());
}

// y, which may be x, and the statistics of the rows where the tape records.
Tensor normalize(const Tape& tape, const Tensor& x, const Parameter& gain, const Parameter& bias,
                 int planes, Tensor y) {
  const Context& context = tape.context();
  const std::int64_t rows = x.rows();
  Tensor statistics;
  if (tape.recording()) statistics = context.empty({rows, planes, 2});
  const Region region(context.profile, "layer normalization", traffic(y, 2));
  dispatch(context, [&](const auto& backend) {
    kernels::layer_norm(backend, rows, planes, x.width() / planes, x.f32(), gain.value.f32(),
                        bias.value.f32(), y.f32(), statistics ? statistics.f32() : nullptr);
  });
  return statistics;
}

// Turns the gradient of the normalized rows into that of x, in place.
void normalize_backward(const Tape& tape, const Tensor& x, const Tensor& statistics,
                        const Parameter& gain, const Parameter& bias, int planes,
                        const Tensor& gradient) {
  const Region back(tape.context().profile, "layer normalization, back", traffic(gradient, 3));
  dispatch(tape.context(), [&](const auto& backend) {
    kernels::layer_norm_backward(backend, x.rows(), planes, x.width() / planes, gradient.f32(),
                                 x.f32(), statistics.f32(), gain.value.f32(), gradient.f32(),
                                 gain.gradient.f32(), bias.gradient.f32());
  });
}

// Room for the gradient of a product: in bfloat16 on a device whose products read it rounded,
// else in float32.
struct GradientBuffer {
  Tensor f32, rounded;
  GradientBuffer(const Context& context, const Shape& shape) {
    if (dispatch(context, [](const auto& b) { return kernels::reads_rounded(b); }))
      rounded = context.empty({shape.rows(), kernels::rounded_stride(shape[-1])}, Dtype::bf16);
    else
      f32 = context.empty(shape);
  }
  float* plain() const { return f32 ? f32.f32() : nullptr; }
  kernels::Bfloat16* bf16() const { return copy_of(rounded); }
  kernels::ProductInput input() const { return {plain(), bf16()}; }
};

// linear_norm() with product, result and gradients in bfloat16, from the product.
Var rounded_norm(Tape& tape, const Var& x, const Dense& dense, const Tensor& product,
                 Parameter& weight, Parameter& gain, Parameter& bias, int planes) {
  const Context& context = tape.context();
  const std::int64_t width = dense.n / planes;
  const Tensor statistics = context.empty({dense.rows, planes, 2});
  const PartWork work{0, 4.0 * static_cast<double>(product.elements())};
  const Var out = tape.result(context.empty(product.shape(), Dtype::bf16));
  {
    const Region region(context.profile, "layer normalization", work);
    dispatch(context, [&](const auto& backend) {
      kernels::layer_norm_rounded(backend, dense.rows, planes, width, product.data<std::uint16_t>(),
                                  gain.value.f32(), bias.value.f32(),
                                  out->value.data<std::uint16_t>(), statistics.f32());
    });
  }
  tape.record([&tape, &context, x, out, product, statistics, &weight, &gain, &bias, planes, width,
               dense, work] {
    if (!out->gradient) return;
    const Tensor gradient = std::exchange(out->gradient, {});  // its last use: updated in place
    auto* const dy = gradient.data<std::uint16_t>();
    {
      const Region back(context.profile, "layer normalization, back", work);
      dispatch(context, [&](const auto& backend) {
        kernels::layer_norm_backward_rounded(
            backend, dense.rows, planes, width, dy, product.data<std::uint16_t>(), statistics.f32(),
            gain.value.f32(), dy, gain.gradient.f32(), bias.gradient.f32());
      });
    }
    dense.backward(tape, x, weight, {nullptr, dy});
  });
  return out;
}

}  // namespace

Var linear_norm(Tape& tape, const Var& x, Parameter& weight, Parameter& gain, Parameter& bias,
                int planes, bool may_round) {
  const Dense dense(x, weight);
  check_norm(gain, dense.n, x->value.shape());
  if (may_round)
    if (const Tensor product = dense.forward_rounded(tape, x, weight))
      return rounded_norm(tape, x, dense, product, weight, gain, bias, planes);
  const Tensor product = dense.forward(tape, x, weight, nullptr);
  Tensor y = tape.recording() ? tape.context().empty(product.shape()) : product;
  const Tensor statistics = normalize(tape, product, gain, bias, planes, y);
  const Var out = tape.result(std::move(y));
  if (!tape.recording()) return out;
  tape.record([&tape, x, out, product, statistics, &weight, &gain, &bias, planes, dense] {
    if (!out->gradient) return;
    const Context& context = tape.context();
    Tensor dy = std::exchange(out->gradient, {});  // its last use
    const Tensor rounded = dispatch(context, [&](const auto& backend) -> Tensor {
      if (!kernels::reads_rounded(backend)) return {};
      const Region back(context.profile, "layer normalization, back", traffic(dy, 3));
      Tensor dx = context.empty({dense.rows, kernels::rounded_stride(dense.n)}, Dtype::bf16);
      kernels::layer_norm_backward_rounded(
          backend, dense.rows, planes, dense.n / planes, dy.f32(), product.f32(), statistics.f32(),
          gain.value.f32(), dx.data<std::uint16_t>(), gain.gradient.f32(), bias.gradient.f32());
      return dx;
    });
    if (rounded) {
      dy = {};
      return dense.backward(tape, x, weight, {nullptr, rounded.data<std::uint16_t>()});
    }
    normalize_backward(tape, product, statistics, gain, bias, planes, dy);
    dense.backward(tape, x, weight, dy.f32());
  });
  return out;
}

Var layer_norm(Tape& tape, Var x, Parameter& gain, Parameter& bias, int planes) {
  check_norm(gain, x->value.width(), x->value.shape());
  Tensor y = tape.reuse(x);
  const Tensor statistics = normalize(tape, x->value, gain, bias, planes, y);
  const Var out = tape.result(std::move(y));
  if (!tape.recording()) return out;
  tape.record([&tape, x, out, statistics, &gain, &bias, planes] {
    if (!out->gradient) return;
    Tensor dx = std::exchange(out->gradient, {});  // its last use: updated in place
    normalize_backward(tape, x->value, statistics, gain, bias, planes, dx);
    tape.accumulate(*x, std::move(dx));
  });
  return out;
}

Var residual_norm(Tape& tape, const Var& x, const Var& h, Parameter& weight, Parameter& gain,
                  Parameter& bias, float p) {
  const Dense dense(h, weight);
  const Shape& shape = x->value.shape();
  NMT_CHECK(shape.rows() == dense.rows && shape[-1] == dense.n, "cannot add {} to {} rows of {}",
            shape.text(), dense.rows, dense.n);
  check_norm(gain, dense.n, shape);
  const Context& context = tape.context();
  const Tensor product = dense.forward_rounded(tape, h, weight);
  const Tensor sum =
      product ? context.empty(shape) : dense.forward(tape, h, weight, nullptr).reshape(shape);
  Tensor statistics;
  if (tape.recording()) statistics = context.empty({dense.rows, 2});
  const Var out = tape.result(tape.recording() ? context.empty(shape) : sum);
  Tensor rounded = allocate_rounded(context, shape);
  const kernels::Dropout dropout =
      tape.recording() ? next_dropout(tape, shape, p) : kernels::Dropout();
  kernels::ResidualNorm args{.rows = dense.rows,
                             .width = dense.n,
                             .x = x->value.f32(),
                             .branch = product ? nullptr : sum.f32(),
                             .branch_rounded = copy_of(product),
                             .gain = gain.value.f32(),
                             .bias = bias.value.f32(),
                             .sum = sum.f32(),
                             .y = out->value.f32(),
                             .statistics = statistics ? statistics.f32() : nullptr};
  if (rounded) args.rounded = rounded.data<std::uint16_t>();
  {
    const Region region(context.profile, "layer normalization", traffic(sum, 4));
    dispatch(context, [&](const auto& backend) { kernels::residual_norm(backend, args, dropout); });
  }
  if (rounded) out->rounded = {out->value.f32(), std::move(rounded)};
  if (!tape.recording()) return out;
  tape.record(
      [&tape, &context, x, h, out, sum, statistics, &weight, &gain, &bias, dense, args, dropout] {
        if (!out->gradient) return;
        Tensor dy = std::exchange(out->gradient, {});  // its last use
        const GradientBuffer branch(context, sum.shape());
        kernels::ResidualNormGradient g{.dy = dy.f32(),
                                        .dbranch = branch.plain(),
                                        .dbranch_rounded = branch.bf16(),
                                        .dgain = gain.gradient.f32(),
                                        .dbias = bias.gradient.f32()};
        if (x->wants_gradient) {
          g.accumulate = static_cast<bool>(x->gradient);
          g.dx = g.accumulate ? x->gradient.f32() : dy.f32();
        }
        {
          const Region back(context.profile, "layer normalization, back", traffic(sum, 4));
          dispatch(context, [&](const auto& backend) {
            kernels::residual_norm_backward(backend, args, dropout, g);
          });
        }
        if (x->wants_gradient && !g.accumulate) x->gradient = std::move(dy);
        dense.backward(tape, h, weight, branch.input());
      });
  return out;
}

}  // namespace nmt::ops
