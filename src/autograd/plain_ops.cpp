#include "autograd/ops.h"
#include "autograd/packed.h"
#include "kernels/layer_norm.h"
#include "kernels/pointwise.h"
#include "kernels/products/gemm.h"
#include "tensor/copy.h"

#include <algorithm>

namespace nmt::ops {
namespace {

constexpr const char* point_wise = "sums, tanh, rows, columns";

// The memory traffic of reading or writing `tensors` tensors of this size.
PartWork traffic(const Tensor& t, int tensors) {
  return {0, 4.0 * tensors * static_cast<double>(t.elements())};
}

}  // namespace

Var linear(Tape& tape, const Var& x, Parameter& weight, Parameter* bias) {
  const Context& context = tape.context();
  const std::int64_t rows = x->value.rows(), k = weight.shape[0], n = weight.shape[1];
  NMT_CHECK(x->value.width() == k, "{} {} cannot multiply rows of {}", weight.name,
            weight.shape.text(), x->value.shape().text());
  Tensor y = context.empty(x->value.shape().with_last(n));
  const double flops = 2.0 * static_cast<double>(rows * n) * static_cast<double>(k);
  const Region region(context.profile, "linear layers", {flops});
  const float* const b = bias ? bias->value.f32() : nullptr;
  Rounded read;  // while recording
  if (weight.is_packed()) {
    packed_product(context, rows, n, k, x->value.f32(), weight.packed, b, y.f32());
  } else {
    kernels::ProductInput left = x->value.f32(), right = weight.value.f32();
    if (tape.recording()) {
      read = Rounded(context, rows, k, x->value.f32());
      left = read.input();
      right = tape.weight(k, n, weight.value.f32());
    }
    dispatch(context, [&](const auto& backend) {
      if (b)
        kernels::gemm_bias(backend, rows, n, k, left, right, b, y.f32());
      else
        kernels::gemm(backend, false, false, rows, n, k, left, k, right, n, 0.0f, y.f32(), n);
    });
  }
  const Var out = tape.result(std::move(y));
  if (!tape.recording()) return out;
  tape.record([&tape, x, read, out, &weight, bias, rows, k, n, flops] {
    if (!out->gradient) return;
    const Context& at = tape.context();
    const Region back(at.profile, "linear layers, back", {x->wants_gradient ? 2 * flops : flops});
    const Rounded dy(at, rows, n, out->gradient.f32());
    dispatch(at, [&](const auto& backend) {
      kernels::gemm(backend, true, false, k, n, rows, read.input(), k, dy.input(), n, 1.0f,
                    weight.gradient.f32(), n);
      if (bias) kernels::sum_rows(backend, rows, n, out->gradient.f32(), bias->gradient.f32());
      if (!x->wants_gradient) return;
      const bool first = !x->gradient;
      if (first) x->gradient = at.empty(x->value.shape());
      kernels::gemm(backend, false, true, rows, k, n, dy.input(), n,
                    tape.weight(k, n, weight.value.f32()), n, first ? 0.0f : 1.0f,
                    x->gradient.f32(), k);
    });
  });
  return out;
}

Symbols send_symbols(const Tape& tape, const std::vector<std::int32_t>& ids, Shape shape) {
  const Context& context = tape.context();
  Symbols symbols{upload(context, ids, shape)};
  if (tape.recording() && context.backend->id_runs)
    symbols.runs = upload(context, kernels::id_runs(ids), {2 * shape.elements() + 1});
  return symbols;
}

Var embedding(Tape& tape, Parameter& table, const Symbols& symbols) {
  const Context& context = tape.context();
  const Tensor& ids = symbols.ids;
  const std::int64_t rows = ids.elements(), vocabulary = table.shape[0], width = table.shape[1];
  const Shape shape =
      ids.shape().rank() == 2 ? Shape{ids.shape()[0], ids.shape()[1], width} : Shape{rows, width};
  Tensor y = context.empty(shape);
  const Region region(context.profile, "embeddings", traffic(y, 2));
  if (table.is_packed())
    packed_columns(context, rows, width, vocabulary, ids.data<std::int32_t>(), table.packed,
                   y.f32());
  else
    dispatch(context, [&](const auto& backend) {
      kernels::gather_rows(backend, rows, width, ids.data<std::int32_t>(), table.value.f32(),
                           y.f32());
    });
  const Var out = tape.result(std::move(y));
  if (!tape.recording()) return out;
  tape.record([&tape, out, &table, symbols, rows, width, vocabulary] {
    if (!out->gradient) return;
    const Region back(tape.context().profile, "embeddings, back", traffic(out->gradient, 2));
    dispatch(tape.context(), [&](const auto& backend) {
      kernels::scatter_add_rows(backend, rows, width, vocabulary, symbols.ids.data<std::int32_t>(),
                                symbols.runs ? symbols.runs.data<std::int32_t>() : nullptr,
                                out->gradient.f32(), table.gradient.f32());
    });
  });
  return out;
}

Var gather_rows(Tape& tape, const Var& x, const Symbols& rows) {
  const Context& context = tape.context();
  const Tensor& ids = rows.ids;
  const std::int64_t count = ids.elements(), width = x->value.width();
  Tensor y = context.empty(ids.shape().rank() == 2 ? Shape{ids.shape()[0], ids.shape()[1], width}
                                                   : Shape{count, width});
  const Region region(context.profile, point_wise, traffic(y, 2));
  dispatch(context, [&](const auto& backend) {
    kernels::gather_rows(backend, count, width, ids.data<std::int32_t>(), x->value.f32(), y.f32());
  });
  const Var out = tape.result(std::move(y));
  if (!tape.recording()) return out;
  tape.record([&tape, x, out, rows, count, width] {
    if (!out->gradient || !x->wants_gradient) return;
    const Region back(tape.context().profile, point_wise, traffic(out->gradient, 2));
    float* const slopes = tape.gradient(*x);
    dispatch(tape.context(), [&](const auto& backend) {
      kernels::scatter_add_rows(
          backend, count, width, x->value.rows(), rows.ids.data<std::int32_t>(),
          rows.runs ? rows.runs.data<std::int32_t>() : nullptr, out->gradient.f32(), slopes);
    });
  });
  return out;
}

Var layer_norm(Tape& tape, Var x, Parameter& gain, Parameter& bias, int planes) {
  const Context& context = tape.context();
  const std::int64_t rows = x->value.rows(), width = x->value.width() / planes;
  NMT_CHECK(gain.shape.elements() == planes * width, "{} {} cannot scale rows of {}", gain.name,
            gain.shape.text(), x->value.shape().text());
  Tensor y = tape.reuse(x), normal, rstd;
  if (tape.recording()) {
    normal = context.empty(x->value.shape());
    rstd = context.empty({rows, planes});
  }
  const Region region(context.profile, "layer normalization", traffic(y, tape.recording() ? 3 : 2));
  dispatch(context, [&](const auto& backend) {
    kernels::layer_norm(backend, rows, planes, width, x->value.f32(), gain.value.f32(),
                        bias.value.f32(), y.f32(), normal ? normal.f32() : nullptr,
                        rstd ? rstd.f32() : nullptr);
  });
  const Var out = tape.result(std::move(y));
  if (!tape.recording()) return out;
  tape.record([&tape, x, out, normal, rstd, &gain, &bias, rows, planes, width] {
    if (!out->gradient) return;
    Tensor dx = out->gradient;  // last use of the gradient: updated in place
    const Region back(tape.context().profile, "layer normalization, back", traffic(dx, 3));
    dispatch(tape.context(), [&](const auto& backend) {
      kernels::layer_norm_backward(backend, rows, planes, width, dx.f32(), normal.f32(), rstd.f32(),
                                   gain.value.f32(), dx.f32(), gain.gradient.f32(),
                                   bias.gradient.f32());
    });
    tape.accumulate(*x, std::move(dx));
    out->gradient = {};
  });
  return out;
}

namespace {

kernels::RowMap row_map_of(const Tape& tape, const Shape& shape, const Tensor& rows) {
  const bool has_steps = shape.rank() == 3;
  if (!has_steps && !rows) return {};
  const Sentences& part = tape.sentences();
  const std::int64_t batch = has_steps ? shape[1] : part.count;
  NMT_CHECK(part.count == 0 || part.count == batch,
            "dropout: shape {} does not match a pass of {} sentences", shape.text(), part.count);
  NMT_CHECK(!rows || (batch > 0 && rows.elements() == shape.rows()),
            "dropout: {} row indices for shape {}", rows.elements(), shape.text());
  kernels::RowMap map{.batch = batch,
                      .step = part.count > 0 ? part.whole : batch,
                      .first = part.first,
                      .stride = part.stride};
  if (has_steps && tape.shares_dropout_over_steps()) map.step = 0;
  if (rows) map.rows = rows.data<std::int32_t>();
  return map;
}

}  // namespace

Var dropout(Tape& tape, const Var& x, float p, const Tensor& rows) {
  if (p <= 0.0f || !tape.recording()) return x;
  Tensor y = tape.context().empty(x->value.shape());
  const auto apply = [&tape, p, rows, stream = tape.next_dropout_stream(),
                      map = row_map_of(tape, y.shape(), rows), count = y.rows(), width = y.width(),
                      work = traffic(y, 2)](const float* from, float* to) {
    const Region region(tape.context().profile, "dropout", work);
    dispatch(tape.context(), [&](const auto& backend) {
      kernels::dropout(backend, count, width, map, p, tape.dropout_key(), stream, from, to);
    });
  };
  apply(x->value.f32(), y.f32());
  const Var out = tape.result(std::move(y));
  tape.record([&tape, x, out, apply] {
    if (!out->gradient) return;
    Tensor dx = out->gradient;
    apply(dx.f32(), dx.f32());
    tape.accumulate(*x, std::move(dx));
    out->gradient = {};
  });
  return out;
}

Var add(Tape& tape, Var x, const Var& y) {
  NMT_CHECK(x->value.shape() == y->value.shape(), "cannot add {} and {}", x->value.shape().text(),
            y->value.shape().text());
  Tensor z = tape.reuse(x);
  const Region region(tape.context().profile, point_wise, traffic(z, 3));
  dispatch(tape.context(), [&](const auto& backend) {
    kernels::add(backend, z.elements(), x->value.f32(), y->value.f32(), z.f32());
  });
  const Var out = tape.result(std::move(z));
  if (!tape.recording()) return out;
  tape.record([&tape, x, y, out] {
    if (!out->gradient) return;
    const Region back(tape.context().profile, point_wise, traffic(out->gradient, 3));
    dispatch(tape.context(), [&](const auto& backend) {
      if (y->wants_gradient)
        kernels::add_scaled(backend, out->gradient.elements(), 1.0f, out->gradient.f32(),
                            tape.gradient(*y));
    });
    tape.accumulate(*x, out->gradient);
    out->gradient = {};
  });
  return out;
}

Var tanh(Tape& tape, Var x) {
  Tensor y = tape.reuse(x);
  const Region region(tape.context().profile, point_wise, traffic(y, 2));
  dispatch(tape.context(), [&](const auto& backend) {
    kernels::tanh_forward(backend, y.elements(), x->value.f32(), y.f32());
  });
  const Var out = tape.result(std::move(y));
  if (!tape.recording()) return out;
  tape.record([&tape, x, out] {
    if (!out->gradient || !x->wants_gradient) return;
    const Region back(tape.context().profile, point_wise, traffic(out->gradient, 4));
    dispatch(tape.context(), [&](const auto& backend) {
      kernels::tanh_backward(backend, out->value.elements(), out->value.f32(), out->gradient.f32(),
                             tape.gradient(*x));
    });
  });
  return out;
}

Var gate(Tape& tape, kernels::Activation activation, Var g, const Var& x) {
  NMT_CHECK(!x || g->value.shape() == x->value.shape(), "a gate {} for {}", g->value.shape().text(),
            x ? x->value.shape().text() : "");
  Tensor y = tape.reuse(g);
  const std::int64_t n = y.elements();
  const Region region(tape.context().profile, "activations and gates", traffic(y, x ? 3 : 2));
  dispatch(tape.context(), [&](const auto& backend) {
    kernels::gate_forward(backend, activation, n, g->value.f32(), x ? x->value.f32() : nullptr,
                          y.f32());
  });
  const Var out = tape.result(std::move(y));
  if (!tape.recording()) return out;
  tape.record([&tape, activation, g, x, out, n] {
    if (!out->gradient) return;
    const Context& at = tape.context();
    const Region back(at.profile, "activations and gates, back", traffic(out->value, x ? 5 : 3));
    kernels::GateGradient gradient{.dy = out->gradient.f32()};
    const auto place = [&at](Node& node, bool& adds) {
      adds = static_cast<bool>(node.gradient);
      if (!adds) node.gradient = at.empty(node.value.shape());
      return node.gradient.f32();
    };
    gradient.dgate = place(*g, gradient.adds_gate);
    if (x) gradient.dx = place(*x, gradient.adds_x);
    dispatch(at, [&](const auto& backend) {
      kernels::gate_backward(backend, activation, n, g->value.f32(), x ? x->value.f32() : nullptr,
                             gradient);
    });
    out->gradient = {};
  });
  return out;
}

Var concat(Tape& tape, const std::vector<Var>& parts) {
  std::int64_t width = 0;
  const std::int64_t rows = parts.front()->value.rows();
  for (const Var& part : parts) {
    NMT_CHECK(part->value.rows() == rows, "cannot concatenate {} and {}",
              part->value.shape().text(), parts.front()->value.shape().text());
    width += part->value.width();
  }
  Tensor y = tape.context().empty(parts.front()->value.shape().with_last(width));
  std::int64_t at = 0;
  const Region region(tape.context().profile, point_wise, traffic(y, 2));
  for (const Var& part : parts) {
    const std::int64_t n = part->value.width();
    dispatch(tape.context(), [&](const auto& backend) {
      kernels::copy_columns(backend, rows, n, part->value.f32(), n, y.f32() + at, width, false);
    });
    at += n;
  }
  const Var out = tape.result(std::move(y));
  if (!tape.recording()) return out;
  tape.record([&tape, parts, out, rows, width] {
    if (!out->gradient) return;
    std::int64_t from = 0;
    const Region back(tape.context().profile, point_wise, traffic(out->gradient, 2));
    for (const Var& part : parts) {
      const std::int64_t n = part->value.width();
      if (part->wants_gradient) {
        const bool first = !part->gradient;
        if (first) part->gradient = tape.context().empty(part->value.shape());
        dispatch(tape.context(), [&](const auto& backend) {
          kernels::copy_columns(backend, rows, n, out->gradient.f32() + from, width,
                                part->gradient.f32(), n, !first);
        });
      }
      from += n;
    }
  });
  return out;
}

Var select_rows(Tape& tape, const Var& x, const Tensor& rows) {
  const std::int64_t n = rows.elements(), width = x->value.width();
  Tensor y = tape.context().empty({n, width});
  const Region region(tape.context().profile, point_wise, traffic(y, 2));
  dispatch(tape.context(), [&](const auto& backend) {
    kernels::gather_rows(backend, n, width, rows.data<std::int32_t>(), x->value.f32(), y.f32());
  });
  const Var out = tape.result(std::move(y));
  if (!tape.recording()) return out;
  tape.record([&tape, x, out, rows, n, width] {
    if (!out->gradient || !x->wants_gradient) return;
    const Region back(tape.context().profile, point_wise, traffic(x->value, 2));
    dispatch(tape.context(), [&](const auto& backend) {
      kernels::add_to_rows(backend, n, width, rows.data<std::int32_t>(), out->gradient.f32(),
                           tape.gradient(*x));
    });
  });
  return out;
}

Var step(Tape& tape, const Var& x, std::int64_t t) {
  const Shape& shape = x->value.shape();
  NMT_CHECK(shape.rank() == 3 && t >= 0 && t < shape[0], "step {} is out of range for {}", t,
            shape.text());
  const Var out = tape.result(x->value.slice(t, 1).reshape({shape[1], shape[2]}));
  if (!tape.recording()) return out;
  tape.record([&tape, x, out, t] {
    if (!out->gradient || !x->wants_gradient) return;
    const std::int64_t n = out->gradient.elements();
    dispatch(tape.context(), [&](const auto& backend) {
      kernels::add_scaled(backend, n, 1.0f, out->gradient.f32(), tape.gradient(*x) + t * n);
    });
  });
  return out;
}

}  // namespace nmt::ops
