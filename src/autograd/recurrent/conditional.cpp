#include "kernels/recurrent/conditional.h"

#include "autograd/attention.h"
#include "autograd/linear/blocks.h"
#include "autograd/ops/conditional.h"
#include "autograd/packed_weights.h"
#include "autograd/recurrent/cell.h"
#include "kernels/pointwise.h"
#include "kernels/products/product_input.h"

namespace nmt::ops {
namespace {

// What the backward pass needs from the forward pass.
struct Saved {
  /// `layer`, `memory` and `x` are set when the tape records.
  Saved(const Context& context, const Conditional& from, const std::vector<Var>& initial_,
        std::int64_t batch, std::int64_t kept, bool recording)
      : initial(initial_),
        start(initial_states(context, from.lower, initial_, batch)),
        lower(view_cell(context, from.lower, recording)),
        higher(view_cell(context, from.higher, recording)),
        lower_buffers(context, from.lower, kept, recording),
        higher_buffers(context, from.higher, kept, recording) {}

  Conditional layer;
  Memory memory;
  Var x;
  std::vector<Var> initial;
  std::vector<Tensor> start, middle;
  ConditionalResult out;
  CellView lower, higher;
  CellBuffers lower_buffers, higher_buffers;
  Tensor queries, headed, contexts_rearranged, xc, xc_normal, xc_rstd;
  Tensor middle_rounded, attended_rounded;
  Tensor query_packed, output_packed, context_packed;
  Tensor query_transposed, output_transposed, context_transposed;
  kernels::Conditional args;
};

// FLOPs of the products with Wq, Wo and Wc.
double product_flops(const kernels::Conditional& a) {
  const std::int64_t rows = a.steps * a.batch, wide = a.higher.unit->inputs * a.higher.width;
  const std::int64_t output = a.headed ? a.attention.width * a.context_width() : 0;
  const double products =
      static_cast<double>(a.lower.width * a.attention.space + output) +
      static_cast<double>(a.context_width() * wide) / static_cast<double>(a.higher.groups);
  return 2.0 * static_cast<double>(rows) * products;
}

// FLOPs and bytes of both cells, product_flops(), attention scores and contexts; backward: these
// and their second gradient.
PartWork conditional_work(const Conditional& layer, const kernels::Conditional& a, bool back) {
  const std::int64_t rows = a.steps * a.batch;
  const Dtype of_x = a.x_rounded ? Dtype::bf16 : Dtype::f32;
  PartWork work = add_work(cell_work(layer.lower, rows, of_x, back),
                           cell_work(layer.higher, rows, Dtype::f32, back));
  const double attention =
      static_cast<double>(a.attention.steps * (a.attention.space + a.attention.width));
  work.flops += product_flops(a) + 2.0 * static_cast<double>(rows) * (back ? 2 : 1) * attention;
  return work;
}

// Gradients of Wq, Wo, Wc and the bias of the context's projection.
void weight_gradients(Tape& tape, const Saved& s, const kernels::ConditionalGradient& g,
                      const CellGradients& higher, const Tensor& dqueries, const Tensor& doutputs) {
  const Context& context = tape.context();
  const kernels::Conditional& a = s.args;
  const std::int64_t rows = a.steps * a.batch, h = a.lower.width, wide = a.higher.unit->inputs * h;
  const std::int64_t space = a.attention.space, width = a.context_width();
  dispatch(context, [&](const auto& backend) {
    const Region region(context.profile, "weight gradients", {product_flops(a)});
    using Input = kernels::ProductInput;
    const Tape::ProductGradient dquery = tape.product_gradient(*s.layer.query, rows),
                                dcontext = tape.product_gradient(*s.layer.context, rows);
    kernels::gemm(
        backend, true, false, h, space, rows, Input(s.middle[0].f32(), copy_of(s.middle_rounded)),
        h, Input(dqueries.f32(), g.dqueries_rounded), space, dquery.beta, dquery.values, space);
    if (a.headed) {
      const Tape::ProductGradient doutput = tape.product_gradient(*s.layer.attention.output, rows);
      kernels::gemm(backend, true, false, a.attention.width, width, rows,
                    Input(a.headed, a.attended_rounded), a.attention.width, Input(doutputs.f32()),
                    width, doutput.beta, doutput.values, width);
    }
    const float* contexts_read = a.higher.rearrange ? s.contexts_rearranged.f32() : a.contexts;
    if (a.higher.groups > 1) {
      const kernels::BlockDiagonal d = blocks_of(*s.layer.context, a.higher.unit->inputs);
      kernels::gemm_batched(backend, d.weight_gradient(), true, false, d.k, d.n, rows,
                            contexts_read, width, higher.dx.f32(), wide, dcontext.beta,
                            dcontext.values, d.ld);
    } else {
      kernels::gemm(backend, true, false, width, wide, rows,
                    Input(contexts_read, a.headed ? nullptr : a.attended_rounded), width,
                    Input(higher.dx.f32(), g.higher.dx_rounded), wide, dcontext.beta,
                    dcontext.values, wide);
    }
    if (s.layer.context_bias)
      kernels::sum_rows(backend, rows, wide, higher.dx.f32(), gradient_of(s.layer.context_bias));
  });
}

void backward(Tape& tape, const Saved& s) {
  const Context& context = tape.context();
  const kernels::Conditional& a = s.args;
  const std::int64_t rows = a.steps * a.batch, h = a.lower.width, wide = a.higher.unit->inputs * h;
  const std::int64_t space = a.attention.space, width = a.context_width();
  const CellGradients lower(context, s.layer.lower, rows, s.x->value);
  CellGradients higher(context, s.layer.higher, rows, s.xc);
  if (a.higher.groups == 1) higher.dx_rounded = allocate_rounded(context, {rows, wide});
  const Tensor dqueries = context.empty({rows, space}),
               dqueries_rounded = allocate_rounded(context, {rows, space});
  Tensor doutputs;
  if (a.headed) doutputs = context.empty({rows, width});
  const Node& states = *s.out.states[0];
  const Node& contexts = *s.out.attended.context;
  Tensor dh = states.gradient;
  kernels::ConditionalGradient g;
  if (!dh) {
    dh = context.empty(states.value.shape());
    dispatch(context,
             [&](const auto& backend) { kernels::fill(backend, dh.f32(), dh.elements(), 0.0f); });
  }
  g.dh = dh.f32();
  g.dcontexts = pointer(contexts.gradient);
  g.lower = lower.view(s.layer.lower);
  g.higher = higher.view(s.layer.higher);
  g.dqueries = dqueries.f32();
  g.dqueries_rounded = copy_of(dqueries_rounded);
  g.doutputs = pointer(doutputs);
  g.dkeys = tape.gradient(*s.memory.keys);
  Node& values = *s.memory.values;
  g.writes_memory = !values.gradient && a.steps > 0;
  if (g.writes_memory) values.gradient = context.empty(values.value.shape());
  g.dmemory = tape.gradient(values);
  g.dv = gradient_of(s.layer.attention.v);
  g.dcontext_gain = gradient_of(s.layer.context_gain);
  g.dcontext_norm_bias = gradient_of(s.layer.context_norm_bias);
  const std::vector<Tensor> dinitial =
      initial_gradients(context, s.layer.lower, a.batch, g.dinitial);
  dispatch(context, [&](const auto& backend) {
    const Tensor scratch = context.empty({kernels::conditional_scratch(backend, a)});
    g.scratch = scratch.f32();
    const Region region(context.profile, "conditional layer, back",
                        conditional_work(s.layer, a, true));
    kernels::conditional_backward(backend, a, g);
  });
  weight_gradients(tape, s, g, higher, dqueries, doutputs);
  add_weight_gradients(tape, s.layer.lower, s.lower_buffers, lower,
                       previous_rows(s.start[0], states, false), rows);
  add_weight_gradients(tape, s.layer.higher, s.higher_buffers, higher,
                       {{{s.middle[0].f32(), copy_of(s.middle_rounded)}, 0, rows}}, rows);
  tape.accumulate(*s.x, lower.of_x().reshape(s.x->value.shape()));
  for (std::size_t p = 0; p < s.initial.size(); ++p) tape.accumulate(*s.initial[p], dinitial[p]);
}

// The weights of the layer's own products, packed; transposed too for the backward pass.
void view_weights(const Context& context, const Conditional& layer, Saved& s, bool recording) {
  kernels::Conditional& a = s.args;
  Parameter* const output = layer.attention.output;
  const auto pack_context = [&](bool transpose, Tensor& packed) -> kernels::PackedWeight {
    Parameter& weight = *layer.context;
    if (layer.higher.groups == 1) return packed_weight(context, weight, transpose, packed);
    if (weight.is_packed()) return view_packed(weight.packed);
    packed = pack_blocks(context, blocks_of(weight, layer.lower.unit->inputs), weight.value.f32(),
                         transpose);
    return view_packed(packed);
  };
  a.query = packed_weight(context, *layer.query, false, s.query_packed);
  if (output) {
    a.output = packed_weight(context, *output, false, s.output_packed);
    a.output_width = output->shape[1];
  }
  a.context = pack_context(false, s.context_packed);
  a.context_bias = value_of(layer.context_bias);
  a.context_gain = value_of(layer.context_gain);
  a.context_norm_bias = value_of(layer.context_norm_bias);
  if (!recording) return;
  a.query_transposed = packed_weight(context, *layer.query, true, s.query_transposed).f32;
  if (output) a.output_transposed = packed_weight(context, *output, true, s.output_transposed).f32;
  a.context_transposed = pack_context(true, s.context_transposed).f32;
}

// Values between the parts of a step, in `kept` rows.
void allocate_values(const Context& context, const Conditional& layer, Saved& s, std::int64_t kept,
                     bool recording) {
  kernels::Conditional& a = s.args;
  const kernels::Unit& unit = *layer.lower.unit;
  const std::int64_t h = layer.lower.width, wide = unit.inputs * h;
  s.queries = context.empty({kept, a.attention.space});
  s.xc = context.empty({kept, wide});
  if (layer.attention.output) s.headed = context.empty({kept, a.attention.width});
  a.headed = pointer(s.headed);  // context_width() reads it
  if (layer.higher.rearrange) s.contexts_rearranged = context.empty({kept, a.context_width()});
  a.queries = s.queries.f32();
  a.xc = s.xc.f32();
  a.contexts_rearranged = pointer(s.contexts_rearranged);
  if (recording && layer.context_gain) {
    s.xc_normal = context.empty({kept, wide});
    s.xc_rstd = context.empty({kept, unit.inputs});
    a.xc_normal = s.xc_normal.f32();
    a.xc_rstd = s.xc_rstd.f32();
  }
  for (int p = 0; p < unit.states; ++p) {
    s.middle.push_back(context.empty({kept, h}));
    a.initial[p] = s.start[p].f32();
    a.middle[p] = s.middle[p].f32();
  }
  s.middle_rounded = allocate_rounded(context, {kept, h});
  if (layer.attention.output || !layer.higher.rearrange)
    s.attended_rounded = allocate_rounded(context, {kept, a.attention.width});
  a.middle_rounded = copy_of(s.middle_rounded);
  a.attended_rounded = copy_of(s.attended_rounded);
  a.lower_record = s.lower_buffers.record();
  a.higher_record = s.higher_buffers.record();
}

// States, contexts and attention of all steps.
void allocate_results(const Tape& tape, const Conditional& layer, Saved& s, std::int64_t kept) {
  const Context& context = tape.context();
  kernels::Conditional& a = s.args;
  for (int p = 0; p < layer.lower.unit->states; ++p) {
    s.out.states.push_back(tape.result(context.empty({a.steps, a.batch, layer.lower.width})));
    a.states[p] = s.out.states[p]->value.f32();
  }
  round_states(tape, layer.lower, *s.out.states[0], a);
  s.out.attended.context = tape.result(context.empty({a.steps, a.batch, a.context_width()}));
  Node& contexts = *s.out.attended.context;
  if (s.attended_rounded && !layer.attention.output && kept == a.steps * a.batch)
    contexts.rounded = {contexts.value.f32(), s.attended_rounded};
  s.out.attended.weights = context.empty({a.steps, a.batch, a.attention.heads, a.attention.steps});
  a.contexts = contexts.value.f32();
  a.weights = s.out.attended.weights.f32();
}

}  // namespace

ConditionalResult conditional(Tape& tape, const Conditional& layer, const Memory& memory,
                              const Projections& projections, const std::vector<Var>& given,
                              const Tensor& sentence, std::int64_t position) {
  const Context& context = tape.context();
  const Var& x = projections.value;
  const Shape& shape = x->value.shape();
  const kernels::Unit& unit = *layer.lower.unit;
  const std::int64_t h = layer.lower.width, wide = unit.inputs * h;
  NMT_CHECK(shape.rank() == 3 && shape[2] == wide, "unit {} of width {} reads [T,B,{}], not {}",
            unit.name, h, wide, shape.text());
  const std::int64_t steps = shape[0], batch = shape[1];
  const bool recording = tape.recording(), keep = recording || tape.probe();
  const kernels::Attention attention_view = view_attention(layer.attention, memory, steps * batch);
  NMT_CHECK(sentence || batch == attention_view.sentences, "{} rows for {} sentences", batch,
            attention_view.sentences);
  const std::int64_t kept = keep ? steps * batch : batch;

  Saved s(context, layer, complete_states(tape, layer.lower, given), batch, kept, recording);
  kernels::Conditional& a = s.args;
  a.lower = s.lower.cell;
  a.higher = s.higher.cell;
  a.attention = attention_view;
  a.steps = steps;
  a.batch = batch;
  a.position = position;
  a.keep = keep;
  view_projections(x->value, a.x, a.x_rounded);
  a.x_norm = pending_norm(projections);
  a.sentence = sentence ? sentence.data<std::int32_t>() : nullptr;
  view_weights(context, layer, s, recording);
  allocate_values(context, layer, s, kept, recording);
  allocate_results(tape, layer, s, kept);
  {
    const Region region(context.profile, "conditional layer", conditional_work(layer, a, false));
    dispatch(context, [&](const auto& backend) { kernels::conditional_forward(backend, a); });
  }
  add_link_cost(tape, attention_view, memory, s.out.attended.weights);

  ConditionalResult out = s.out;
  if (Probe* probe = tape.probe()) {
    probe_gates(tape, layer.lower, x->value, s.lower_buffers,
                states_before(context, s.start, out.states, false), false);
    probe_gates(tape, layer.higher, s.xc.reshape(shape), s.higher_buffers, s.middle, false,
                static_cast<int>(probe->units.size()) - 1);
    probe->attention = host_copy(context, *probe, out.attended.weights);
  }
  if (!recording) return out;
  s.layer = layer;
  s.memory = memory;
  s.x = x;
  tape.record([&tape, saved = std::move(s)] {
    if (saved.out.states[0]->gradient || saved.out.attended.context->gradient || saved.memory.guide)
      backward(tape, saved);
  });
  return out;
}

}  // namespace nmt::ops
