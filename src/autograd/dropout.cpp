#include "autograd/dropout.h"

#include "autograd/traffic.h"
#include "kernels/decoding/step_rows.h"

#include <utility>

namespace nmt::ops {
namespace {

kernels::RowMap row_map_of(const Tape& tape, const Shape& shape, const Tensor& rows) {
  const bool has_steps = shape.rank() == 3;
  if (!has_steps && !rows) return {};
  const BatchSlice& slice = tape.batch_slice();
  const std::int64_t sentences = tape.sentences(), batch = has_steps ? shape[1] : sentences;
  NMT_CHECK(sentences == 0 || sentences == batch,
            "dropout: shape {} does not match a pass of {} sentences", shape.text(), sentences);
  NMT_CHECK(!rows || (batch > 0 && rows.elements() == shape.rows()),
            "dropout: {} row indices for shape {}", rows.elements(), shape.text());
  kernels::RowMap map{.batch = batch,
                      .step = sentences > 0 ? slice.whole : batch,
                      .first = slice.first,
                      .stride = slice.stride};
  if (has_steps && tape.shares_dropout_over_steps()) map.step = 0;
  if (rows) map.rows = rows.data<std::int32_t>();
  return map;
}

}  // namespace

kernels::Dropout next_dropout(Tape& tape, const Shape& shape, float p, const Tensor& rows) {
  if (p <= 0.0f) return {};
  return {p, tape.dropout_key(), tape.next_dropout_stream(), row_map_of(tape, shape, rows)};
}

Var dropout(Tape& tape, const Var& x, float p, const Tensor& rows) {
  if (p <= 0.0f || !tape.recording()) return x;
  Tensor y = tape.context().empty(x->value.shape());
  const kernels::Dropout drawn = next_dropout(tape, y.shape(), p, rows);
  // `rows` stays alive with the closure.
  const auto apply = [&tape, rows, drawn, count = y.rows(), width = y.width(),
                      work = traffic(y, 2)](const float* from, float* to) {
    const Region region(tape.context().profile, "dropout", work);
    dispatch(tape.context(), [&](const auto& backend) {
      kernels::dropout(backend, count, width, drawn.map, drawn.p, drawn.key, drawn.stream, from,
                       to);
    });
  };
  Tensor rounded = allocate_rounded(tape.context(), y.shape());  // products read the result
  if (rounded) {
    const Region region(tape.context().profile, "dropout", traffic(y, 2));
    dispatch(tape.context(), [&](const auto& backend) {
      kernels::dropout_rounded(backend, y.rows(), y.width(), drawn, x->value.f32(), y.f32(),
                               copy_of(rounded));
    });
  } else {
    apply(x->value.f32(), y.f32());
  }
  const Var out = tape.result(std::move(y));
  if (rounded) out->rounded = {out->value.f32(), std::move(rounded)};
  tape.record([&tape, x, out, apply] {
    if (!out->gradient) return;
    Tensor dx = out->gradient;
    apply(dx.f32(), dx.f32());
    tape.accumulate(*x, std::move(dx));
    out->gradient = {};
  });
  return out;
}

}  // namespace nmt::ops
