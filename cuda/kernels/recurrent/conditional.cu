#include "cuda/kernels/attention/attention.h"
#include "cuda/kernels/columns.h"
#include "cuda/kernels/recurrent/cell.h"
#include "kernels/pointwise.h"
#include "kernels/products/gemm.h"
#include "kernels/recurrent/conditional.h"
#include "kernels/recurrent/rearrange.h"

#include <algorithm>

namespace nmt::kernels {
namespace {

using namespace nmt::cuda;

// The rows of step t in the records.
std::int64_t record_row_of(const Conditional& a, std::int64_t t) {
  return a.keep ? t * a.batch : 0;
}

UnitSteps lower_step(const Conditional& a, std::int64_t t) {
  const std::int64_t h = a.lower.width, row = t * a.batch;
  UnitSteps step;
  step.rows = a.batch;
  step.x = part(a.x, row, a.lower.unit->inputs * h);
  step.x_rounded = part(a.x_rounded, row, a.lower.unit->inputs * h);
  step.position = a.position + t;
  for (int p = 0; p < a.lower.unit->states; ++p) {
    step.previous[p] = t == 0 ? a.initial[p] : a.states[p] + (row - a.batch) * h;
    step.next[p] = a.middle[p] + record_row_of(a, t) * h;
  }
  if (t > 0) step.previous_rounded = part(a.states_rounded, row - a.batch, h);
  step.next_rounded = part(a.middle_rounded, record_row_of(a, t), h);
  set_norm(a.x_norm, step);
  return step;
}

// The step reads the context's projection and applies its bias and normalization.
UnitSteps higher_step(const Conditional& a, std::int64_t t) {
  const std::int64_t h = a.higher.width, record_row = record_row_of(a, t),
                     inputs = a.higher.unit->inputs;
  UnitSteps step;
  step.rows = a.batch;
  step.x = a.xc + record_row * inputs * h;
  if (a.context_bias || a.context_gain) {
    step.raw_x = a.xc + record_row * inputs * h;
    step.x_bias = a.context_bias;
    step.x_norm = {.gain = a.context_gain,
                   .norm_bias = a.context_norm_bias,
                   .normal = a.xc_normal ? a.xc_normal + record_row * inputs * h : nullptr,
                   .rstd = a.xc_rstd ? a.xc_rstd + record_row * inputs : nullptr};
  }
  step.position = a.position + t;
  for (int p = 0; p < a.higher.unit->states; ++p) {
    step.previous[p] = a.middle[p] + record_row * h;
    step.next[p] = a.states[p] + t * a.batch * h;
  }
  step.previous_rounded = part(a.middle_rounded, record_row, h);
  step.next_rounded = part(a.states_rounded, t * a.batch, h);
  return step;
}

void project_context(const Cuda& cuda, const Conditional& a, ProductInput context,
                     std::int64_t record_row) {
  const std::int64_t h = a.higher.width, inputs = a.higher.unit->inputs, width = a.context_width();
  if (a.higher.rearrange) {
    float* const rearranged = a.contexts_rearranged + record_row * width;
    rearrange(cuda, a.batch, a.higher.groups, width, context.f32, rearranged);
    context = rearranged;
  }
  product(cuda, a.higher.groups, inputs, a.batch, width, h, context, a.context.f32, false,
          a.xc + record_row * inputs * h);
}

// Whether the higher unit of a step and the lower unit of the next one run as a pair.
bool has_pairs(const Conditional& a) {
  return !a.lower.unit->has_recurrent_product();
}
UnitSteps with_parameters(const Cell& cell, const CellRecord& record, std::int64_t record_row,
                          UnitSteps step) {
  set_parameters(cell, record, record_row, step);
  return step;
}

// The higher unit of step t, and the lower unit of the next step.
void units_forward(const Cuda& cuda, const Conditional& a, std::int64_t t) {
  const std::int64_t record_row = record_row_of(a, t);
  const bool last = t + 1 == a.steps;
  if (last || !has_pairs(a))
    cell_forward(cuda, a.higher, a.higher_record, record_row, higher_step(a, t));
  if (last) return;
  const std::int64_t next = record_row_of(a, t + 1);
  if (!has_pairs(a)) return cell_forward(cuda, a.lower, a.lower_record, next, lower_step(a, t + 1));
  pair_kernels(*a.lower.unit)
      .forward(cuda, with_parameters(a.higher, a.higher_record, record_row, higher_step(a, t)),
               with_parameters(a.lower, a.lower_record, next, lower_step(a, t + 1)));
}

}  // namespace

void conditional_forward(const Cuda& cuda, const Conditional& a) {
  const Attention& att = a.attention;
  const std::int64_t h = a.lower.width, width = a.context_width();
  if (a.steps > 0)
    cell_forward(cuda, a.lower, a.lower_record, record_row_of(a, 0), lower_step(a, 0));
  for (std::int64_t t = 0; t < a.steps; ++t) {
    const std::int64_t row = t * a.batch, record_row = record_row_of(a, t);
    float* const query = a.queries + record_row * att.space;
    float* const context = a.contexts + row * width;
    float* const attended = a.headed ? a.headed + record_row * att.width : context;
    Bfloat16* const rounded = part(a.attended_rounded, record_row, att.width);
    product(cuda, 1, 1, a.batch, h, att.space,
            {a.middle[0] + record_row * h, part(a.middle_rounded, record_row, h)}, a.query.f32,
            false, query);
    nmt::cuda::attention_forward(cuda, att, 1, a.batch, a.sentence, query,
                                 a.weights + row * att.heads * att.steps, attended, rounded);
    if (a.headed)
      product(cuda, 1, 1, a.batch, att.width, width, {attended, rounded}, a.output.f32, false,
              context);
    project_context(cuda, a, {context, a.headed ? nullptr : rounded}, record_row);
    units_forward(cuda, a, t);
  }
}

namespace {

// Scratch memory of the backward pass, in consecutive parts.
struct Space {
  CellScratch lower, higher;
  float* sums;        // [B, 2*inputs*H] gradients of the projection's gain and norm_bias
  float* temporary;   // [B, cell_space()]
  float* dattended;   // [T,B,V]
  float* rearranged;  // [B,M]
  float* dscores;     // [T,B,heads,S]
  float* attention;   // attention_sources_scratch()
};

std::int64_t projection_sums(const Conditional& a) {
  return a.context_gain ? 2 * a.higher.unit->inputs * a.higher.width : 0;
}
std::int64_t rearranged_width(const Conditional& a) {
  return a.higher.rearrange ? a.context_width() : 0;
}

// The number of scores of a row.
std::int64_t scores(const Conditional& a) {
  return a.attention.heads * a.attention.steps;
}

Space start(const Cuda& cuda, const Conditional& a, float* memory) {
  Space space;
  space.lower = start_cell(cuda, a.lower, a.steps, a.batch, &memory);
  space.higher = start_cell(cuda, a.higher, a.steps, a.batch, &memory);
  space.sums = memory;
  space.temporary = space.sums + a.batch * projection_sums(a);
  space.dattended = space.temporary + a.batch * cell_space(a.lower);
  space.rearranged = space.dattended + a.steps * a.batch * a.attention.width;
  space.dscores = space.rearranged + a.batch * rearranged_width(a);
  space.attention = space.dscores + a.steps * a.batch * scores(a);
  fill(cuda, space.sums, a.batch * projection_sums(a), 0.0f);
  return space;
}

// The gradients of the context and of the attention from the gradient of the product.
void context_backward(const Cuda& cuda, const Conditional& a, const ConditionalGradient& g,
                      std::int64_t row, const Space& space) {
  const std::int64_t h = a.higher.width, inputs = a.higher.unit->inputs, wide = inputs * h,
                     width = a.context_width(), attended = a.attention.width;
  float* const dxc = g.higher.dx + row * wide;
  float* const dattended = space.dattended + row * attended;
  float* const dcontext = a.headed ? g.doutputs + row * width : dattended;
  const ProductInput product_gradient(dxc, part(g.higher.dx_rounded, row, wide));
  const bool add = g.dcontexts != nullptr;
  if (a.higher.rearrange) {
    product_transposed(cuda, a.higher.groups, inputs, a.batch, width, h, product_gradient,
                       a.context_transposed, false, space.rearranged);
    rearrange_back(cuda, a.batch, a.higher.groups, width, space.rearranged, add, dcontext);
  } else {
    product_transposed(cuda, a.higher.groups, inputs, a.batch, width, h, product_gradient,
                       a.context_transposed, add, dcontext);
  }
  if (a.headed)
    gemm_packed(cuda, a.batch, attended, width, dcontext, width, a.output_transposed, false,
                dattended, attended);
}

UnitSteps higher_step_back(const Conditional& a, std::int64_t t, const Space& space) {
  const std::int64_t wide = a.higher.unit->inputs * a.higher.width;
  UnitSteps step = higher_step(a, t);
  step.x_norm.gain_sums = space.sums;
  step.x_norm.norm_bias_sums = space.sums + wide;
  step.x_norm.sums_stride = 2 * wide;
  return step;
}

void higher_backward(const Cuda& cuda, const Conditional& a, const ConditionalGradient& g,
                     std::int64_t t, const Space& space) {
  const std::int64_t row = t * a.batch;
  cell_backward(cuda, a.higher, a.higher_record, g.higher, row, higher_step_back(a, t, space),
                g.dh + row * a.higher.width, g.dinitial, space.higher, space.temporary);
}

// The lower unit of step t, and the higher unit of the step before.
void units_backward(const Cuda& cuda, const Conditional& a, const ConditionalGradient& g,
                    std::int64_t t, const Space& space) {
  const std::int64_t row = t * a.batch, before = row - a.batch;
  if (t == 0 || !has_pairs(a))
    cell_backward(cuda, a.lower, a.lower_record, g.lower, row, lower_step(a, t), nullptr,
                  g.dinitial, space.lower, space.temporary);
  if (t == 0) return;
  if (!has_pairs(a)) return higher_backward(cuda, a, g, t - 1, space);
  UnitStepsGradient lower = step_gradient(a.lower, g.lower, row, space.lower),
                    higher = step_gradient(a.higher, g.higher, before, space.higher);
  std::copy_n(g.dinitial, a.lower.unit->states, lower.carry);
  higher.dh = g.dh + before * a.higher.width;
  pair_kernels(*a.lower.unit)
      .backward(
          cuda,
          with_parameters(a.higher, a.higher_record, before, higher_step_back(a, t - 1, space)),
          with_parameters(a.lower, a.lower_record, row, lower_step(a, t)), higher, lower);
}

}  // namespace

std::int64_t conditional_scratch(const Cuda&, const Conditional& a) {
  return cell_scratch(a.lower, a.steps, a.batch) + cell_scratch(a.higher, a.steps, a.batch) +
         a.batch * (projection_sums(a) + cell_space(a.lower) + rearranged_width(a)) +
         a.steps * a.batch * (a.attention.width + scores(a)) +
         attention_sources_scratch(a.attention);
}

void conditional_backward(const Cuda& cuda, const Conditional& a, const ConditionalGradient& g) {
  const Attention& att = a.attention;
  const std::int64_t h = a.lower.width, wide = a.higher.unit->inputs * h;
  const Space space = start(cuda, a, g.scratch);
  for (int p = 0; p < a.lower.unit->states; ++p) fill(cuda, g.dinitial[p], a.batch * h, 0.0f);
  if (g.dcontexts)  // the steps add to them
    copy_columns(cuda, a.steps * a.batch, a.context_width(), g.dcontexts, a.context_width(),
                 a.headed ? g.doutputs : space.dattended, a.context_width(), false);
  if (a.steps > 0) higher_backward(cuda, a, g, a.steps - 1, space);
  for (std::int64_t t = a.steps - 1; t >= 0; --t) {
    const std::int64_t row = t * a.batch;
    context_backward(cuda, a, g, row, space);
    float* const dquery = g.dqueries + row * att.space;
    Bfloat16* const dquery_rounded = part(g.dqueries_rounded, row, att.space);
    Attention of_step = att;
    if (att.links.offsets) of_step.links.offsets += row;
    attention_backward_queries(cuda, of_step, 1, a.queries + row * att.space,
                               a.weights + row * scores(a), space.dattended + row * att.width,
                               space.dscores + row * scores(a), dquery, dquery_rounded);
    product_transposed(cuda, 1, 1, a.batch, h, att.space, {dquery, dquery_rounded},
                       a.query_transposed, true, g.dinitial[0]);
    units_backward(cuda, a, g, t, space);
  }
  attention_backward_sources(cuda, att, a.steps, a.queries, a.weights, space.dscores,
                             {.dcontext = space.dattended,
                              .dkeys = g.dkeys,
                              .dmemory = g.dmemory,
                              .dv = g.dv,
                              .scratch = space.attention},
                             g.writes_memory);
  finish_cell(cuda, a.lower, a.steps, a.batch, a.position, space.lower, g.lower);
  finish_cell(cuda, a.higher, a.steps, a.batch, a.position, space.higher, g.higher);
  if (!a.context_gain) return;
  const auto add = [&](const float* sums, float* out) {
    if (out)
      add_columns(
          cuda, a.batch, wide,
          [=] __device__(std::int64_t r, std::int64_t i) { return sums[r * 2 * wide + i]; }, out);
  };
  add(space.sums, g.dcontext_gain);
  add(space.sums + wide, g.dcontext_norm_bias);
}

}  // namespace nmt::kernels
