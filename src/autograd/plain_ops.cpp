#include "autograd/ops.h"
#include "autograd/packed.h"
#include "kernels/layer_norm.h"
#include "kernels/pointwise.h"
#include "kernels/products/gemm.h"
#include "tensor/copy.h"

#include <algorithm>
#include <utility>

namespace nmt::ops {
namespace {

constexpr const char* point_wise = "sums, tanh, rows, columns";

// The memory traffic of reading or writing `tensors` tensors of this size.
PartWork traffic(const Tensor& t, int tensors) {
  return {0, 4.0 * tensors * static_cast<double>(t.elements())};
}

// A dense layer: its sizes and its products.
struct Dense {
  std::int64_t rows, k, n;
  Dense(const Var& x, const Parameter& weight)
      : rows(x->value.rows()), k(weight.shape[0]), n(weight.shape[1]) {
    NMT_CHECK(x->value.width() == k, "{} {} cannot multiply rows of {}", weight.name,
              weight.shape.text(), x->value.shape().text());
  }
  double flops() const { return 2.0 * static_cast<double>(rows * n) * static_cast<double>(k); }

  Tensor forward(Tape& tape, const Var& x, Parameter& weight, const Parameter* bias) const {
    const Context& context = tape.context();
    Tensor y = context.empty(x->value.shape().with_last(n));
    const Region region(context.profile, "linear layers", {flops()});
    const float* const b = bias ? bias->value.f32() : nullptr;
    if (weight.is_packed()) {
      packed_product(context, rows, n, k, x->value.f32(), weight.packed, b, y.f32());
      return y;
    }
    kernels::ProductInput left = x->value.f32(), right = weight.value.f32();
    if (tape.recording()) {
      left = tape.input(*x);
      right = tape.weight(k, n, weight.value.f32());
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
    dispatch(context, [&](const auto& backend) {
      kernels::gemm(backend, true, false, k, n, rows, tape.input(*x), k, dy, n, 1.0f,
                    weight.gradient.f32(), n);
      if (!x->wants_gradient) return;
      const bool first = !x->gradient;
      if (first) x->gradient = context.empty(x->value.shape());
      kernels::gemm(backend, false, true, rows, k, n, dy, n, tape.weight(k, n, weight.value.f32()),
                    n, first ? 0.0f : 1.0f, x->gradient.f32(), k);
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

}  // namespace

Var linear(Tape& tape, const Var& x, Parameter& weight, Parameter* bias) {
  const Dense dense(x, weight);
  const Var out = tape.result(dense.forward(tape, x, weight, bias));
  if (!tape.recording()) return out;
  tape.record([&tape, x, out, &weight, bias, dense] {
    if (!out->gradient) return;
    const Tensor& dy = out->gradient;
    dense.backward(tape, x, weight, Rounded(tape.context(), dense.rows, dense.n, dy.f32()).input());
    if (!bias) return;
    dispatch(tape.context(), [&](const auto& backend) {
      kernels::sum_rows(backend, dense.rows, dense.n, dy.f32(), bias->gradient.f32());
    });
  });
  return out;
}

Var linear_norm(Tape& tape, const Var& x, Parameter& weight, Parameter& gain, Parameter& bias,
                int planes) {
  const Dense dense(x, weight);
  check_norm(gain, dense.n, x->value.shape());
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
