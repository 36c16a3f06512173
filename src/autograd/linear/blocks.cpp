#include "autograd/linear/blocks.h"

#include "kernels/pointwise.h"
#include "kernels/recurrent/rearrange.h"

namespace nmt::ops {

Tensor pack_blocks(const Context& context, const kernels::BlockDiagonal& d, const float* values,
                   bool transpose) {
  const kernels::GemmBatch batch = transpose ? d.input_gradient() : d.product();
  const std::int64_t k = transpose ? d.n : d.k, n = transpose ? d.k : d.n;
  Tensor packed = context.empty({kernels::packed_batched_size(context.cpu, batch, k, n)});
  dispatch(context, [&](const auto& backend) {
    kernels::pack_batched(backend, batch, transpose, k, n, values, d.ld, packed.f32());
  });
  return packed;
}

void freeze_blocks(const Context& context, Parameter& weight, int planes) {
  weight.gradient = {};
  if (weight.is_packed()) return;
  weight.load();
  weight.packed = pack_blocks(context, blocks_of(weight, planes), weight.value.f32(), false);
  weight.drop_value();
}

Var block_linear(Tape& tape, const Var& x, Parameter& weight, int planes, Parameter* bias) {
  const Context& context = tape.context();
  NMT_CHECK(weight.shape.rank() == 3 && weight.shape[2] % planes == 0,
            "{} {} is not a block-diagonal weight with {} planes", weight.name, weight.shape.text(),
            planes);
  const kernels::BlockDiagonal d = blocks_of(weight, planes);
  const std::int64_t rows = x->value.rows(), in = d.groups * d.k,
                     out_width = d.groups * d.planes * d.n;
  NMT_CHECK(x->value.width() == in, "{} {} cannot multiply rows of {}", weight.name,
            weight.shape.text(), x->value.shape().text());
  Tensor y = context.empty(x->value.shape().with_last(out_width));
  const double flops = 2.0 * static_cast<double>(rows * out_width) * static_cast<double>(d.k);
  const Region region(context.profile, "linear layers", {flops});
  dispatch(context, [&](const auto& backend) {
    if (weight.is_packed())
      kernels::gemm_packed_batched(backend, d.product(), rows, d.n, d.k, x->value.f32(), in,
                                   weight.packed.f32(), false, y.f32(), out_width);
    else
      kernels::gemm_batched(backend, d.product(), false, false, rows, d.n, d.k, x->value.f32(), in,
                            weight.value.f32(), d.ld, 0.0f, y.f32(), out_width);
    if (bias) kernels::add_bias(backend, rows, out_width, y.f32(), bias->value.f32(), y.f32());
  });
  const Var out = tape.result(std::move(y));
  if (!tape.recording()) return out;
  tape.record([&tape, x, out, &weight, bias, d, rows, in, out_width, flops] {
    if (!out->gradient) return;
    const Region back(tape.context().profile, "linear layers, back",
                      {x->wants_gradient ? 2 * flops : flops});
    const float* dy = out->gradient.f32();
    const Tape::ProductGradient dw = tape.product_gradient(weight, rows);
    dispatch(tape.context(), [&](const auto& backend) {
      kernels::gemm_batched(backend, d.weight_gradient(), true, false, d.k, d.n, rows,
                            x->value.f32(), in, dy, out_width, dw.beta, dw.values, d.ld);
      if (bias) kernels::sum_rows(backend, rows, out_width, dy, bias->gradient.f32());
      if (!x->wants_gradient) return;
      const bool first = !x->gradient;
      if (first) x->gradient = tape.context().empty(x->value.shape());
      kernels::gemm_batched(backend, d.input_gradient(), false, true, rows, d.k, d.n, dy, out_width,
                            weight.value.f32(), d.ld, first ? 0.0f : 1.0f, x->gradient.f32(), in);
    });
  });
  return out;
}

Var rearrange(Tape& tape, const Var& x, std::int64_t groups) {
  const std::int64_t rows = x->value.rows(), width = x->value.width();
  NMT_CHECK(groups > 0 && width % groups == 0, "{} groups do not divide rows of {}", groups,
            x->value.shape().text());
  Tensor y = tape.context().empty(x->value.shape());
  dispatch(tape.context(), [&](const auto& backend) {
    kernels::rearrange(backend, rows, groups, width, x->value.f32(), y.f32());
  });
  const Var out = tape.result(std::move(y));
  if (!tape.recording()) return out;
  tape.record([&tape, x, out, groups, rows, width] {
    if (!out->gradient || !x->wants_gradient) return;
    const bool first = !x->gradient;
    if (first) x->gradient = tape.context().empty(x->value.shape());
    dispatch(tape.context(), [&](const auto& backend) {
      kernels::rearrange_back(backend, rows, groups, width, out->gradient.f32(), !first,
                              x->gradient.f32());
    });
    out->gradient = {};
  });
  return out;
}

}  // namespace nmt::ops
