#include "autograd/ops/plain.h"
#include "autograd/packed_weights.h"
#include "autograd/traffic.h"
#include "kernels/decoding/step_rows.h"
#include "kernels/pointwise.h"
#include "tensor/copy.h"

#include <algorithm>
#include <utility>

namespace nmt::ops {
namespace {

constexpr const char* point_wise = "sums, tanh, rows, columns";

}  // namespace

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
  Tensor y = context.empty(shape), rounded;
  const Region region(context.profile, "embeddings", traffic(y, 2));
  if (table.is_packed()) {
    rounded = allocate_rounded(context, shape);
    packed_columns(context, rows, width, vocabulary, ids.data<std::int32_t>(), table.packed,
                   y.f32(), copy_of(rounded));
  } else
    dispatch(context, [&](const auto& backend) {
      kernels::gather_rows(backend, rows, width, ids.data<std::int32_t>(), table.value.f32(),
                           y.f32());
    });
  const Var out = tape.result(std::move(y));
  if (rounded) out->rounded = {out->value.f32(), std::move(rounded)};
  if (!tape.recording()) return out;
  tape.record([&tape, out, &table, symbols, rows, width, vocabulary] {
    if (!out->gradient) return;
    const Region back(tape.context().profile, "embeddings, back", traffic(out->gradient, 2));
    float* const slopes = tape.gradient(table);
    dispatch(tape.context(), [&](const auto& backend) {
      kernels::scatter_add_rows(backend, rows, width, vocabulary, symbols.ids.data<std::int32_t>(),
                                symbols.runs ? symbols.runs.data<std::int32_t>() : nullptr,
                                out->gradient.f32(), slopes);
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

Var scale(Tape& tape, Var x, float factor) {
  Tensor y = tape.reuse(x);
  const Region region(tape.context().profile, point_wise, traffic(y, 2));
  dispatch(tape.context(), [&](const auto& backend) {
    kernels::scale(backend, y.elements(), factor, x->value.f32(), y.f32());
  });
  const Var out = tape.result(std::move(y));
  if (!tape.recording()) return out;
  tape.record([&tape, x, out, factor] {
    if (!out->gradient || !x->wants_gradient) return;
    const Region back(tape.context().profile, point_wise, traffic(out->gradient, 3));
    dispatch(tape.context(), [&](const auto& backend) {
      kernels::add_scaled(backend, out->value.elements(), factor, out->gradient.f32(),
                          tape.gradient(*x));
    });
  });
  return out;
}

Var tanh(Tape& tape, Var x) {
  Tensor y = tape.reuse(x);
  const Region region(tape.context().profile, point_wise, traffic(y, 2));
  // In inference, the output layer or a unit's product may read it.
  Tensor rounded = tape.recording() ? Tensor() : allocate_rounded(tape.context(), y.shape());
  dispatch(tape.context(), [&](const auto& backend) {
    if (rounded)
      kernels::tanh_rounded(backend, y.elements(), x->value.f32(), y.f32(), copy_of(rounded));
    else
      kernels::tanh_forward(backend, y.elements(), x->value.f32(), y.f32());
  });
  const Var out = tape.result(std::move(y));
  if (rounded) out->rounded = {out->value.f32(), std::move(rounded)};
  if (!tape.recording()) return out;
  tape.record([&tape, x, out] {
    if (!out->gradient || !x->wants_gradient) return;
    const Region back(tape.context().profile, point_wise, traffic(out->gradient, 4));
    const bool adds = static_cast<bool>(x->gradient);
    if (!adds) x->gradient = tape.context().empty(x->value.shape());
    dispatch(tape.context(), [&](const auto& backend) {
      kernels::tanh_backward(backend, out->value.elements(), out->value.f32(), out->gradient.f32(),
                             x->gradient.f32(), adds);
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
    const Context& context = tape.context();
    const Region back(context.profile, "activations and gates, back",
                      traffic(out->value, x ? 5 : 3));
    kernels::GateGradient gradient{.dy = out->gradient.f32()};
    const auto place = [&context](Node& node, bool& adds) {
      adds = static_cast<bool>(node.gradient);
      if (!adds) node.gradient = context.empty(node.value.shape());
      return node.gradient.f32();
    };
    gradient.dgate = place(*g, gradient.adds_gate);
    if (x) gradient.dx = place(*x, gradient.adds_x);
    dispatch(context, [&](const auto& backend) {
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
  const Context& context = tape.context();
  const Var out = tape.result(context.empty(parts.front()->value.shape().with_last(width)));
  Tensor rounded = allocate_rounded(context, out->value.shape());  // products read the result
  std::vector<kernels::RowsOfMatrix> columns;
  for (const Var& part : parts)
    columns.push_back({part->value.width(), part->value.f32(), nullptr});
  {
    const Region region(context.profile, point_wise, traffic(out->value, 2));
    dispatch(context, [&](const auto& backend) {
      kernels::join_columns(backend, rows, columns, out->value.f32(), copy_of(rounded));
    });
  }
  if (rounded) out->rounded = {out->value.f32(), std::move(rounded)};
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
  Tensor rounded = allocate_rounded(tape.context(), y.shape());  // products read the result
  const Region region(tape.context().profile, point_wise, traffic(y, 2));
  dispatch(tape.context(), [&](const auto& backend) {
    if (rounded)
      kernels::gather_rows_rounded(backend, n, width, rows.data<std::int32_t>(), x->value.f32(),
                                   y.f32(), copy_of(rounded));
    else
      kernels::gather_rows(backend, n, width, rows.data<std::int32_t>(), x->value.f32(), y.f32());
  });
  const Var out = tape.result(std::move(y));
  if (rounded) out->rounded = {out->value.f32(), std::move(rounded)};
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

std::vector<Var> select_rows_of_each(const Tape& tape, const std::vector<Var>& matrices,
                                     const Tensor& rows) {
  NMT_CHECK(!tape.recording(), "rows of several matrices are selected in inference only");
  const std::int64_t n = rows.elements();
  std::vector<Var> selected;
  std::vector<kernels::RowsOfMatrix> copies;
  for (const Var& x : matrices) {
    const std::int64_t width = x->value.width();
    Tensor y = tape.context().empty({n, width});
    copies.push_back({width, x->value.f32(), y.f32()});
    selected.push_back(tape.constant(std::move(y)));
  }
  double bytes = 0;
  for (const Var& y : selected) bytes += 8.0 * static_cast<double>(y->value.elements());
  const Region region(tape.context().profile, point_wise, {0, bytes});
  dispatch(tape.context(), [&](const auto& backend) {
    kernels::gather_rows_of_each(backend, n, rows.data<std::int32_t>(), copies);
  });
  return selected;
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
