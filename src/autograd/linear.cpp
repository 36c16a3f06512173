// Dense layers and layer normalization, apart and together.

#include "autograd/dropout.h"
#include "autograd/ops.h"
#include "autograd/packed.h"
#include "autograd/traffic.h"
#include "kernels/layer_norm.h"
#include "kernels/pointwise.h"
#include "kernels/products/product_input.h"
#include "tensor/copy.h"

#include <utility>

namespace nmt::ops {
namespace {

// A dense layer: its sizes and its products.
struct Dense {
  std::int64_t rows, k, n;
  Dense(const Var& x, const Parameter& weight)
      : rows(x->value.rows()), k(weight.shape[0]), n(weight.shape[1]) {
    NMT_CHECK(x->value.width() == k, "{} {} cannot multiply rows of {}", weight.name,
              weight.shape.text(), x->value.shape().text());
  }
  double flops() const { return 2.0 * static_cast<double>(rows * n) * static_cast<double>(k); }

  // The result in bfloat16, in training on a device whose products read that; else empty.
  Tensor forward_rounded(Tape& tape, const Var& x, Parameter& weight) const {
    if (!tape.recording() || tape.probe()) return {};
    const Context& context = tape.context();
    Tensor y = rounded_room(context, x->value.shape().with_last(n));
    if (!y) return y;
    const Region region(context.profile, "linear layers", {flops()});
    dispatch(context, [&](const auto& backend) {
      kernels::gemm_rounded(backend, false, rows, n, k, tape.input(*x), tape.weight(weight),
                            y.data<std::uint16_t>(), n);
    });
    return y;
  }

  Tensor forward(Tape& tape, const Var& x, Parameter& weight, const Parameter* bias) const {
    const Context& context = tape.context();
    Tensor y = context.empty(x->value.shape().with_last(n));
    const Region region(context.profile, "linear layers", {flops()});
    const float* const b = bias ? bias->value.f32() : nullptr;
    if (weight.is_packed()) {
      packed_product(context, rows, n, k, tape.input(*x), weight.packed, b, y.f32(),
                     &weight.packed_rows);
      return y;
    }
    kernels::ProductInput left = x->value.f32(), right = weight.value.f32();
    if (tape.recording()) {
      left = tape.input(*x);
      right = tape.weight(weight);
    }
    dispatch(context, [&](const auto& backend) {
      if (b)
        kernels::gemm_bias(backend, rows, n, k, left, right, b, y.f32());
      else
        kernels::gemm(backend, false, false, rows, n, k, left, k, right, n, 0.0f, y.f32(), n);
    });
    return y;
  }

  // From the gradient of the output.
  void backward(Tape& tape, const Var& x, Parameter& weight,
                const kernels::ProductInput& dy) const {
    const Context& context = tape.context();
    const Region back(context.profile, "linear layers, back",
                      {x->wants_gradient ? 2 * flops() : flops()});
    const Tape::ProductGradient dw = tape.product_gradient(weight, rows);
    dispatch(context, [&](const auto& backend) {
      kernels::gemm(backend, true, false, k, n, rows, tape.input(*x), k, dy, n, dw.beta, dw.values,
                    n);
      if (!x->wants_gradient) return;
      const bool first = !x->gradient;
      if (first) x->gradient = context.empty(x->value.shape());
      kernels::gemm(backend, false, true, rows, k, n, dy, n, tape.weight(weight), n,
                    first ? 0.0f : 1.0f, x->gradient.f32(), k);
    });
  }
};

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
struct GradientRoom {
  Tensor f32, rounded;
  GradientRoom(const Context& context, const Shape& shape) {
    if (dispatch(context, [](const auto& b) { return kernels::reads_rounded(b); }))
      rounded = context.empty({shape.rows(), kernels::rounded_stride(shape[-1])}, Dtype::bf16);
    else
      f32 = context.empty(shape);
  }
  float* plain() const { return f32 ? f32.f32() : nullptr; }
  kernels::Bfloat16* bf16() const { return copy_of(rounded); }
  kernels::ProductInput input() const { return {plain(), bf16()}; }
};

// The backward function of linear(), from the gradient of its result.
void record_linear(Tape& tape, const Var& x, const Var& out, Parameter& weight, Parameter* bias,
                   const Dense& dense) {
  if (!tape.recording()) return;
  tape.record([&tape, x, out, &weight, bias, dense] {
    if (!out->gradient) return;
    const Tensor& dy = out->gradient;
    dense.backward(tape, x, weight, Rounded(tape.context(), dense.rows, dense.n, dy.f32()).input());
    if (!bias) return;
    dispatch(tape.context(), [&](const auto& backend) {
      kernels::sum_rows(backend, dense.rows, dense.n, dy.f32(), bias->gradient.f32());
    });
  });
}

}  // namespace

Var linear(Tape& tape, const Var& x, Parameter& weight, Parameter* bias) {
  const Dense dense(x, weight);
  const Var out = tape.result(dense.forward(tape, x, weight, bias));
  record_linear(tape, x, out, weight, bias, dense);
  return out;
}

std::vector<Var> linear_of_each(Tape& tape, const Var& x, const std::vector<Parameter*>& weights) {
  std::vector<Var> products;
  const Parameter& first = *weights.at(0);
  const Dense dense(x, first);
  const std::int64_t stride = packed_elements(tape.context(), Dtype::f32, dense.k, dense.n);
  bool joined = weights.size() > 1 && !tape.context().backend->host_memory;
  for (std::size_t i = 0; joined && i < weights.size(); ++i) {
    const Parameter& weight = *weights[i];
    joined = weight.is_packed() && weight.shape == first.shape &&
             weight.packed.f32() == first.packed.f32() + static_cast<std::int64_t>(i) * stride;
  }
  if (!joined) {
    for (Parameter* weight : weights) products.push_back(linear(tape, x, *weight));
    return products;
  }
  const auto count = static_cast<std::int64_t>(weights.size());
  const Tensor all = tape.context().empty({count, dense.rows, dense.n});
  const Region region(tape.context().profile, "linear layers",
                      {static_cast<double>(count) * dense.flops()});
  dispatch(tape.context(), [&](const auto& backend) {
    kernels::gemm_packed_of_each(backend, count, dense.rows, dense.n, dense.k, tape.input(*x),
                                 first.packed.f32(), stride, all.f32());
  });
  for (std::int64_t i = 0; i < count; ++i)
    products.push_back(tape.constant(all.slice(i, 1).reshape(x->value.shape().with_last(dense.n))));
  return products;
}

void join_packed(const Context& context, const std::vector<Parameter*>& weights) {
  if (weights.size() < 2 || context.backend->host_memory) return;
  const Tensor& first = weights[0]->packed;
  for (const Parameter* weight : weights)
    if (!weight->is_packed() || weight->shape != weights[0]->shape) return;
  const std::int64_t elements = first.elements();
  const Tensor all = context.empty({static_cast<std::int64_t>(weights.size()), elements});
  for (std::size_t i = 0; i < weights.size(); ++i) {
    Tensor& packed = weights[i]->packed;
    const Tensor place = all.slice(static_cast<std::int64_t>(i), 1).reshape(packed.shape());
    dispatch(context, [&](const auto& backend) {
      copy_within(backend, place.f32(), packed.f32(),
                  static_cast<std::size_t>(elements) * sizeof(float));
    });
    packed = place;
  }
}

Var linear_for_attention(Tape& tape, const Var& x, Parameter& weight) {
  const Dense dense(x, weight);
  // A copy of x has no gaps then.
  Tensor rounded = dense.k % 8 == 0 ? dense.forward_rounded(tape, x, weight) : Tensor();
  const Var out =
      tape.result(rounded ? std::move(rounded) : dense.forward(tape, x, weight, nullptr));
  record_linear(tape, x, out, weight, nullptr, dense);
  return out;
}

namespace {

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
  tape.record(
      [&tape, x, out, product, statistics, &weight, &gain, &bias, planes, width, dense, work] {
        if (!out->gradient) return;
        const Context& at = tape.context();
        const Tensor gradient = std::exchange(out->gradient, {});  // its last use: updated in place
        auto* const dy = gradient.data<std::uint16_t>();
        {
          const Region back(at.profile, "layer normalization, back", work);
          dispatch(at, [&](const auto& backend) {
            kernels::layer_norm_backward_rounded(
                backend, dense.rows, planes, width, dy, product.data<std::uint16_t>(),
                statistics.f32(), gain.value.f32(), dy, gain.gradient.f32(), bias.gradient.f32());
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
    const Context& at = tape.context();
    Tensor dy = std::exchange(out->gradient, {});  // its last use
    const Tensor rounded = dispatch(at, [&](const auto& backend) -> Tensor {
      if (!kernels::reads_rounded(backend)) return {};
      const Region back(at.profile, "layer normalization, back", traffic(dy, 3));
      Tensor dx = at.empty({dense.rows, kernels::rounded_stride(dense.n)}, Dtype::bf16);
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
  Tensor rounded = rounded_room(context, shape);
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
  tape.record([&tape, x, h, out, sum, statistics, &weight, &gain, &bias, dense, args, dropout] {
    if (!out->gradient) return;
    const Context& at = tape.context();
    Tensor dy = std::exchange(out->gradient, {});  // its last use
    const GradientRoom branch(at, sum.shape());
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
      const Region back(at.profile, "layer normalization, back", traffic(sum, 4));
      dispatch(at, [&](const auto& backend) {
        kernels::residual_norm_backward(backend, args, dropout, g);
      });
    }
    if (x->wants_gradient && !g.accumulate) x->gradient = std::move(dy);
    dense.backward(tape, h, weight, branch.input());
  });
  return out;
}

}  // namespace nmt::ops
