#include "kernels/self_attention.h"

#include "autograd/ops/attention.h"
#include "kernels/attention/quantized_self_attention.h"
#include "kernels/products/gemm_batched.h"
#include "tensor/copy.h"

#include <cmath>

namespace nmt::ops {
namespace {

using kernels::GemmBatch;

kernels::SelfAttention shape_of(const Var& x, std::int64_t heads) {
  const Shape& s = x->value.shape();
  NMT_CHECK(s.rank() == 3 && heads > 0 && s[2] % (3 * heads) == 0,
            "{} is not queries, keys and values of {} heads", s.text(), heads);
  return {s[0], s[1], heads, s[2] / (3 * heads), nullptr};
}

// Products over all heads of all sentences. The first matrix of a head is [T,T] or part of the
// joined tensor, and so on.
struct Products {
  explicit Products(const kernels::SelfAttention& a)
      : square(a.steps * a.steps), ld(3 * a.sentences * a.width()), shape(a) {}

  // scores [T,T] = queries keys^T, or the gradient of the weights: dcontext values^T.
  template <class Backend>
  void scores(const Backend& on, const float* rows, std::int64_t row_group, std::int64_t row_ld,
              const float* columns, float* to) const {
    kernels::gemm_batched(on, batch(row_group, 3 * shape.size, square), false, true, shape.steps,
                          shape.steps, shape.size, rows, row_ld, columns, ld, 0.0f, to,
                          shape.steps);
  }
  // weights X or weights^T X [T,size] for X with these distances.
  template <class Backend>
  void apply(const Backend& on, bool transpose, const float* weights, const float* x,
             std::int64_t x_group, std::int64_t x_ld, float* to, std::int64_t to_group,
             std::int64_t to_ld) const {
    kernels::gemm_batched(on, batch(square, x_group, to_group), transpose, false, shape.steps,
                          shape.size, shape.steps, weights, shape.steps, x, x_ld, 0.0f, to, to_ld);
  }

  std::int64_t square, ld;
  const kernels::SelfAttention& shape;

 private:
  GemmBatch batch(std::int64_t a, std::int64_t b, std::int64_t c) const {
    return {shape.groups(), 1, a, 0, b, 0, c, 0};
  }
};

}  // namespace

Var self_attention(Tape& tape, const Var& x, std::int64_t heads, const Tensor& lengths) {
  const Context& context = tape.context();
  const kernels::SelfAttention shape = shape_of(x, heads);
  NMT_CHECK(lengths.elements() == shape.sentences, "{} lengths for {} sentences",
            lengths.elements(), shape.sentences);
  const std::int64_t size = shape.size, three = 3 * size,
                     context_ld = shape.sentences * shape.width();
  const double flops =
      4.0 * static_cast<double>(shape.steps * shape.steps * shape.sentences * shape.width());
  const auto with_lengths = [](kernels::SelfAttention a, const Tensor& of) {
    a.lengths = of.data<std::int32_t>();
    return a;
  };
  const Var out = tape.result(context.empty({shape.steps, shape.sentences, shape.width()}));
  if (!tape.recording() && context.weights == Dtype::i8) {
    const Region region(context.profile, "self-attention", {flops});
    kernels::quantized_self_attention(context.cpu, with_lengths(shape, lengths), x->value.f32(),
                                      out->value.f32());
    return out;
  }
  Tensor weights = context.empty({shape.groups(), shape.steps, shape.steps});
  {
    const Region region(context.profile, "self-attention", {flops});
    const kernels::SelfAttention a = with_lengths(shape, lengths);
    const Products products(a);
    const float *query = x->value.f32(), *key = query + size, *value = key + size;
    dispatch(context, [&](const auto& backend) {
      products.scores(backend, query, three, products.ld, key, weights.f32());
      kernels::self_attention_softmax(backend, a, weights.f32());
      products.apply(backend, false, weights.f32(), value, three, products.ld, out->value.f32(),
                     size, context_ld);
    });
  }
  if (!tape.recording()) return out;
  tape.record([&tape, &context, x, out, weights, lengths, shape, with_lengths, size, three,
               context_ld, flops] {
    if (!out->gradient || !x->wants_gradient) return;
    const Region region(context.profile, "self-attention, back", {2 * flops});
    const kernels::SelfAttention a = with_lengths(shape, lengths);
    const Products products(a);
    const Tensor dscores = context.empty(weights.shape());
    Tensor dx = context.empty(x->value.shape());
    const float *query = x->value.f32(), *key = query + size, *value = key + size,
                *dout = out->gradient.f32();
    float *dquery = dx.f32(), *dkey = dquery + size, *dvalue = dkey + size;
    dispatch(context, [&](const auto& backend) {
      const auto apply = [&](bool transpose, const Tensor& by, const float* from,
                             std::int64_t group, std::int64_t ld, float* to) {
        products.apply(backend, transpose, by.f32(), from, group, ld, to, three, products.ld);
      };
      apply(true, weights, dout, size, context_ld, dvalue);
      products.scores(backend, dout, size, context_ld, value, dscores.f32());
      kernels::self_attention_softmax_backward(backend, a, weights.f32(), dscores.f32());
      apply(false, dscores, key, three, products.ld, dquery);
      apply(true, dscores, query, three, products.ld, dkey);
    });
    out->gradient = {};
    tape.accumulate(*x, std::move(dx));
  });
  return out;
}

Tensor turns(const Context& context, std::int64_t steps, std::int64_t size) {
  NMT_CHECK(size % 2 == 0, "heads of {} channels have no pairs to turn", size);
  const std::int64_t half = size / 2;
  std::vector<float> values(static_cast<std::size_t>(steps * size));
  for (std::int64_t i = 0; i < half; ++i) {
    const double speed =
        std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(size));
    for (std::int64_t t = 0; t < steps; ++t) {
      const double angle = static_cast<double>(t) * speed;
      values[static_cast<std::size_t>(t * size + i)] = static_cast<float>(std::cos(angle));
      values[static_cast<std::size_t>(t * size + half + i)] = static_cast<float>(std::sin(angle));
    }
  }
  return upload(context, values, {steps, size});
}

Var rotate(Tape& tape, Var x, std::int64_t heads, const Tensor& turns) {
  const kernels::SelfAttention shape = shape_of(x, heads);
  NMT_CHECK(turns.shape() == Shape({shape.steps, shape.size}), "turns {} for {} steps of {}",
            turns.shape().text(), shape.steps, shape.size);
  Tensor y = tape.reuse(x);
  const double bytes = 8.0 * static_cast<double>(y.elements());
  const Region region(tape.context().profile, "rotary positions", {0, bytes});
  dispatch(tape.context(), [&](const auto& backend) {
    kernels::rotate(backend, shape, turns.f32(), false, x->value.f32(), y.f32());
  });
  const Var out = tape.result(std::move(y));
  if (!tape.recording()) return out;
  tape.record([&tape, x, out, turns, shape, bytes] {
    if (!out->gradient) return;
    Tensor dx = out->gradient;  // last use of the gradient: updated in place
    const Region back(tape.context().profile, "rotary positions, back", {0, bytes});
    dispatch(tape.context(), [&](const auto& backend) {
      kernels::rotate(backend, shape, turns.f32(), true, dx.f32(), dx.f32());
    });
    out->gradient = {};
    tape.accumulate(*x, std::move(dx));
  });
  return out;
}

}  // namespace nmt::ops
