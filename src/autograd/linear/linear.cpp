// Linear layers.

#include "autograd/ops/linear.h"

#include "autograd/linear/dense.h"
#include "autograd/packed_weights.h"
#include "kernels/pointwise.h"
#include "tensor/copy.h"

#include <utility>

namespace nmt::ops {
namespace {

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

}  // namespace nmt::ops
