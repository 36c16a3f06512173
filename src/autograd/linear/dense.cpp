#include "autograd/linear/dense.h"

#include "autograd/packed_weights.h"
#include "kernels/pointwise.h"

namespace nmt::ops {

Dense::Dense(const Var& x, const Parameter& weight)
    : rows(x->value.rows()), k(weight.shape[0]), n(weight.shape[1]) {
  NMT_CHECK(x->value.width() == k, "{} {} cannot multiply rows of {}", weight.name,
            weight.shape.text(), x->value.shape().text());
}

Tensor Dense::forward_rounded(Tape& tape, const Var& x, Parameter& weight) const {
  if (!tape.recording() || tape.probe()) return {};
  const Context& context = tape.context();
  Tensor y = allocate_rounded(context, x->value.shape().with_last(n));
  if (!y) return y;
  const Region region(context.profile, "linear layers", {flops()});
  dispatch(context, [&](const auto& backend) {
    kernels::gemm_rounded(backend, false, rows, n, k, tape.input(*x), tape.weight(weight),
                          y.data<std::uint16_t>(), n);
  });
  return y;
}

Tensor Dense::forward(Tape& tape, const Var& x, Parameter& weight, const Parameter* bias) const {
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

void Dense::backward(Tape& tape, const Var& x, Parameter& weight,
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

}  // namespace nmt::ops
