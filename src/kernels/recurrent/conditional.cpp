#include "kernels/recurrent/conditional.h"

#include "kernels/layer_norm.h"
#include "kernels/products/gemm.h"
#include "kernels/recurrent/rearrange.h"
#include "kernels/recurrent/rows.h"

namespace nmt::kernels {
namespace {

UnitStep lower_step(const Conditional& a, std::int64_t t, std::int64_t at, std::int64_t begin,
                    std::int64_t rows) {
  const std::int64_t h = a.lower.width, row = t * a.batch + begin;
  UnitStep step;
  step.rows = rows;
  step.stride = a.batch;
  step.x = a.x + row * a.lower.unit->inputs * h;
  step.position = position_row(a.lower, a.position + t);
  for (int p = 0; p < a.lower.unit->states; ++p) {
    step.previous[p] = t == 0 ? a.initial[p] + begin * h : a.states[p] + (row - a.batch) * h;
    step.next[p] = a.middle[p] + at * h;
  }
  return step;
}

UnitStep higher_step(const Conditional& a, std::int64_t t, std::int64_t at, std::int64_t begin,
                     std::int64_t rows) {
  const std::int64_t h = a.higher.width;
  UnitStep step;
  step.rows = rows;
  step.stride = a.batch;
  step.x = a.xc + at * a.higher.unit->inputs * h;
  step.position = position_row(a.higher, a.position + t);
  for (int p = 0; p < a.higher.unit->states; ++p) {
    step.previous[p] = a.middle[p] + at * h;
    step.next[p] = a.states[p] + (t * a.batch + begin) * h;
  }
  return step;
}

}  // namespace

void conditional_forward(const Cpu& cpu, const Conditional& a) {
  const Attention& att = a.attention;
  const std::int64_t h = a.lower.width, inputs = a.higher.unit->inputs, wide = inputs * h,
                     width = a.context_width();
  const RowShares shares(cpu, a.batch);
  const RowsCpu on = shares.cpu(cpu);
  shares.run(cpu, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    const std::int64_t rows = end - begin;
    for (std::int64_t t = 0; t < a.steps; ++t) {
      const std::int64_t row = t * a.batch + begin, at = (a.keep ? t * a.batch : 0) + begin;
      cell_forward(on, a.lower, a.lower_record, at, lower_step(a, t, at, begin, rows));
      product_rows(on, 1, 1, rows, h, att.space, a.middle[0] + at * h, a.query, false,
                   a.queries + at * att.space);
      float* const attended = a.headed ? a.headed + at * att.width : a.contexts + row * att.width;
      for (std::int64_t r = 0; r < rows; ++r)
        attention_row_forward(
            att, a.sentence ? a.sentence[begin + r] : begin + r, a.queries + (at + r) * att.space,
            a.weights + (row + r) * att.heads * att.steps, attended + r * att.width);
      if (a.headed)
        product_rows(on, 1, 1, rows, att.width, width, attended, a.output, false,
                     a.contexts + row * width);
      float* xc = a.xc + at * wide;
      if (a.context_bias)
        for (std::int64_t r = 0; r < rows; ++r) std::copy_n(a.context_bias, wide, xc + r * wide);
      const float* context = a.contexts + row * width;
      if (a.higher.rearrange) {
        float* rearranged = a.contexts_rearranged + at * width;
        rearrange_rows(rows, a.higher.groups, width, context, rearranged);
        context = rearranged;
      }
      product_rows(on, a.higher.groups, inputs, rows, width, h, context, a.context,
                   a.context_bias != nullptr, xc);
      if (a.context_gain)
        layer_norm_rows(rows, inputs, h, xc, a.context_gain, a.context_norm_bias, xc,
                        a.xc_normal ? a.xc_normal + at * wide : nullptr,
                        a.xc_rstd ? a.xc_rstd + at * inputs : nullptr);
      cell_forward(on, a.higher, a.higher_record, at, higher_step(a, t, at, begin, rows));
    }
  });
}

namespace {

// The sums of a share: lower cell, higher cell, dv, gain and norm bias of the context's projection,
// and S floats for the softmax.
struct Layout {
  explicit Layout(const Conditional& a)
      : higher(cell_sums(a.lower)),
        v(higher + cell_sums(a.higher)),
        gain(v + a.attention.space),
        norm_bias(gain + a.higher.unit->inputs * a.higher.width),
        softmax(norm_bias + a.higher.unit->inputs * a.higher.width),
        stride(softmax + a.attention.steps) {}
  std::int64_t higher, v, gain, norm_bias, softmax, stride;
};

// Floats per row for the gradient of the context: as the higher unit reads it, rearranged, and
// before the output projection.
std::int64_t context_space(const Conditional& a) {
  return a.context_width() * (a.higher.rearrange ? 2 : 1) + (a.headed ? a.attention.width : 0);
}

// The rows [begin, begin + rows) of a share and its buffers.
struct BackwardShare {
  std::int64_t begin, rows;
  float* carry[max_states];  // [rows, H] each
  float* sums;               // Layout::stride floats
  float* temporary;          // of cell_backward()
  float* dcontext;           // [rows, context_width()], unless headed
  float* rearranged;         // [rows, context_width()], of a higher unit that rearranges
  float* dheads;             // [rows, width of the attention], if headed
};

// The backward pass of step t for the rows of a share.
void step_backward(const RowsCpu& on, const Conditional& a, const ConditionalGradient& g,
                   const Layout& layout, const BackwardShare& share, std::int64_t t) {
  const Attention& att = a.attention;
  const std::int64_t h = a.lower.width, inputs = a.higher.unit->inputs, wide = inputs * h,
                     width = a.context_width();
  const std::int64_t begin = share.begin, rows = share.rows, row = t * a.batch + begin;
  float* const* const carry = share.carry;
  float* const sums = share.sums;
  add_floats(rows * h, g.dh + row * h, carry[0]);
  cell_backward(on, a.higher, a.higher_record, g.higher, row, higher_step(a, t, row, begin, rows),
                carry, sums + layout.higher, share.temporary);
  float* dxc = g.higher.dx + row * wide;
  if (a.context_gain)
    layer_norm_backward_rows(rows, inputs, h, dxc, a.xc_normal + row * wide,
                             a.xc_rstd + row * inputs, a.context_gain, dxc, sums + layout.gain,
                             sums + layout.norm_bias);
  float* const dcontext = a.headed ? g.doutputs + row * width : share.dcontext;
  if (g.dcontexts) std::copy_n(g.dcontexts + row * width, rows * width, dcontext);
  const bool add = g.dcontexts != nullptr;
  if (a.higher.rearrange) {
    product_transposed_rows(on, a.higher.groups, inputs, rows, width, h, dxc, a.context_transposed,
                            false, share.rearranged);
    rearrange_back_rows(rows, a.higher.groups, width, share.rearranged, add, dcontext);
  } else {
    product_transposed_rows(on, a.higher.groups, inputs, rows, width, h, dxc, a.context_transposed,
                            add, dcontext);
  }
  if (a.headed)
    product_transposed_rows(on, 1, 1, rows, att.width, width, dcontext, a.output_transposed, false,
                            share.dheads);
  const float* const dattended = a.headed ? share.dheads : dcontext;
  for (std::int64_t r = 0; r < rows; ++r)
    attention_row_backward(att, begin + r, row + r, a.queries + (row + r) * att.space,
                           a.weights + (row + r) * att.heads * att.steps, dattended + r * att.width,
                           g.dqueries + (row + r) * att.space, g.dkeys, g.dmemory, sums + layout.v,
                           sums + layout.softmax);
  product_transposed_rows(on, 1, 1, rows, h, att.space, g.dqueries + row * att.space,
                          a.query_transposed, true, carry[0]);
  cell_backward(on, a.lower, a.lower_record, g.lower, row, lower_step(a, t, row, begin, rows),
                carry, sums, share.temporary);
}

}  // namespace

std::int64_t conditional_scratch(const Cpu& cpu, const Conditional& a) {
  return RowShares(cpu, a.batch).count * Layout(a).stride +
         a.batch * (cell_space(a.lower) + context_space(a));
}

void conditional_backward(const Cpu& cpu, const Conditional& a, const ConditionalGradient& g) {
  const Attention& att = a.attention;
  const RowShares shares(cpu, a.batch);
  const RowsCpu on = shares.cpu(cpu);
  const Layout layout(a);
  const std::int64_t wide = a.higher.unit->inputs * a.lower.width, width = a.context_width();
  std::fill_n(g.scratch, shares.count * layout.stride, 0.0f);
  if (g.writes_memory) fill(cpu, g.dmemory, att.steps * att.sentences * att.width, 0.0f);
  float* state_space = g.scratch + shares.count * layout.stride;
  float* contexts = state_space + a.batch * cell_space(a.lower);
  shares.run(cpu, [&](std::int64_t number, std::int64_t begin, std::int64_t end) {
    float* const space = contexts + begin * context_space(a);
    const std::int64_t rows = end - begin;
    BackwardShare share{begin,
                        rows,
                        {},
                        g.scratch + number * layout.stride,
                        state_space + begin * cell_space(a.lower),
                        space,
                        space + rows * width,
                        space + rows * (context_space(a) - att.width)};
    start_carry(a.lower, g.dinitial, begin, rows, share.carry);
    for (std::int64_t t = a.steps - 1; t >= 0; --t) step_backward(on, a, g, layout, share, t);
  });
  add_cell_sums(a.lower, g.scratch, shares.count, layout.stride, g.lower);
  add_cell_sums(a.higher, g.scratch + layout.higher, shares.count, layout.stride, g.higher);
  if (att.kind == AttentionKind::additive)
    add_shares(g.scratch + layout.v, shares.count, layout.stride, att.space, g.dv);
  if (a.context_gain) {
    add_shares(g.scratch + layout.gain, shares.count, layout.stride, wide, g.dcontext_gain);
    add_shares(g.scratch + layout.norm_bias, shares.count, layout.stride, wide,
               g.dcontext_norm_bias);
  }
}

}  // namespace nmt::kernels
