#include "autograd/attention.h"

#include "autograd/ops/linear.h"
#include "autograd/recurrent/cell.h"
#include "kernels/attention/quantized_memory.h"

namespace nmt::ops {
namespace {

// The shapes of keys [S,B,A] and values [S,B,V] as kernel arguments.
kernels::Attention view_shapes(const AttentionShape& shape, const Shape& values,
                               const Shape& keys) {
  NMT_CHECK(values.rank() == 3 && keys.rank() == 3 && values[0] == keys[0] && values[1] == keys[1],
            "shapes of memory {} and keys {} do not match", values.text(), keys.text());
  NMT_CHECK(keys[2] % shape.heads == 0 && values[2] % shape.heads == 0,
            "heads: {} does not divide the attention space {} and the width {} of the memory",
            shape.heads, keys[2], values[2]);
  kernels::Attention a;
  a.kind = shape.kind;
  a.steps = values[0];
  a.sentences = values[1];
  a.space = keys[2];
  a.width = values[2];
  a.heads = shape.heads;
  return a;
}

// Moves keys and values into int8.
void quantize(const Context& context, const AttentionShape& shape, Memory& memory) {
  const Tensor &values = memory.values->value, &keys = memory.keys->value;
  kernels::Attention a = view_shapes(shape, values.shape(), keys.shape());
  a.keys = keys.f32();
  a.memory = values.f32();
  a.lengths = memory.lengths.data<std::int32_t>();
  const std::int64_t stride = kernels::quantized_memory_bytes(a.steps, a.space, a.width, a.heads);
  memory.quantized = {context.empty({a.sentences, stride}, Dtype::i8), a.steps, a.space, a.width,
                      a.heads};
  kernels::quantize_memory(
      context.cpu, a, stride,
      reinterpret_cast<std::byte*>(memory.quantized.bytes.data<std::int8_t>()));
  memory.values = memory.keys = nullptr;
}

}  // namespace

Memory remember(const Tape& tape, const AttentionShape& shape, Var values, Var keys,
                Tensor lengths) {
  Memory memory{std::move(values), std::move(keys), std::move(lengths), {}};
  const Context& context = tape.context();
  if (shape.kind == kernels::AttentionKind::dot) {
    if (!tape.recording() && context.weights == Dtype::i8) quantize(context, shape, memory);
    return memory;
  }
  if (!context.backend->exponential_keys) return memory;
  const Tensor& plain = memory.keys->value;
  memory.exp_keys = tape.recording() ? context.empty(plain.shape()) : plain;
  kernels::attention_exp_keys(context.cpu, plain.elements(), plain.f32(), memory.exp_keys.f32());
  if (!tape.recording()) memory.keys = nullptr;
  return memory;
}

kernels::Attention view_attention(const AttentionShape& shape, const Memory& memory,
                                  std::int64_t rows) {
  const QuantizedMemory& quantized = memory.quantized;
  if (quantized.bytes) {
    const Shape& bytes = quantized.bytes.shape();
    kernels::Attention a = view_shapes(shape, {quantized.steps, bytes[0], quantized.width},
                                       {quantized.steps, bytes[0], quantized.space});
    a.quantized = reinterpret_cast<const std::byte*>(quantized.bytes.data<std::int8_t>());
    a.quantized_stride = bytes[1];
    a.lengths = memory.lengths.data<std::int32_t>();
    return a;
  }
  const Tensor& keys = memory.keys ? memory.keys->value : memory.exp_keys;
  kernels::Attention a = view_shapes(shape, memory.values->value.shape(), keys.shape());
  if (memory.keys && memory.keys->value.dtype() == Dtype::bf16) {
    const Node& of_values = *memory.values;
    a.keys_rounded = memory.keys->value.data<std::uint16_t>();
    a.memory_rounded = of_values.value.dtype() == Dtype::bf16
                           ? of_values.value.data<std::uint16_t>()
                           : of_values.rounded.copy();
    NMT_CHECK(a.memory_rounded && a.width % 8 == 0, "rounded keys {} of a memory {} in float32",
              keys.shape().text(), of_values.value.shape().text());
  } else {
    a.keys = memory.keys ? memory.keys->value.f32() : nullptr;
    a.memory = memory.values->value.f32();
  }
  a.exp_keys = memory.exp_keys ? memory.exp_keys.f32() : nullptr;
  a.lengths = memory.lengths.data<std::int32_t>();
  a.v = shape.v ? shape.v->value.f32() : nullptr;
  if (const AttentionGuide* guide = memory.guide.get()) {
    NMT_CHECK(guide->offsets.elements() == rows + 1 && guide->head >= 0 &&
                  guide->head < shape.heads && guide->cost.elements() == 1,
              "guided alignment: {} offsets for {} rows, head {} of {}", guide->offsets.elements(),
              rows, guide->head, shape.heads);
    a.links = {guide->offsets.data<std::int32_t>(), guide->sources.data<std::int32_t>(),
               guide->head, guide->weight};
  }
  return a;
}

void add_link_cost(const Tape& tape, const kernels::Attention& attention, const Memory& memory,
                   const Tensor& weights) {
  if (!memory.guide) return;
  const Context& context = tape.context();
  const std::int64_t rows = memory.guide->offsets.elements() - 1;
  const Tensor scratch = context.empty({rows}, Dtype::f64);
  dispatch(context, [&](const auto& backend) {
    kernels::attention_link_cost(backend, attention.links, rows, attention.heads, attention.steps,
                                 weights.f32(), scratch.data<double>(),
                                 memory.guide->cost.data<double>());
  });
}

Attended attention(Tape& tape, const AttentionShape& shape, const Memory& memory, const Var& query,
                   const Tensor& sentence) {
  const Context& context = tape.context();
  const Shape& q = query->value.shape();
  const kernels::Attention args = view_attention(shape, memory, query->value.rows());
  NMT_CHECK(q.rank() == 3 && q[2] == args.space, "queries {} for an attention space of {}",
            q.text(), args.space);
  NMT_CHECK(sentence || q[1] == args.sentences, "queries {} for {} sentences", q.text(),
            args.sentences);
  Attended out;
  const auto projected = [&tape, &shape, &out]() -> Attended {
    return {shape.output ? linear(tape, out.context, *shape.output) : out.context, out.weights};
  };
  out.context = tape.result(context.empty({q[0], q[1], args.width}));
  out.weights = context.empty({q[0], q[1], args.heads, args.steps});
  const double flops = 2.0 * static_cast<double>(q[0] * q[1] * args.steps) *
                       static_cast<double>(args.space + args.width);
  const Region region(context.profile, "attention", {flops});
  dispatch(context, [&](const auto& backend) {
    kernels::attention_forward(backend, args, q[0], q[1],
                               sentence ? sentence.data<std::int32_t>() : nullptr,
                               query->value.f32(), out.weights.f32(), out.context->value.f32());
  });
  add_link_cost(tape, args, memory, out.weights);
  if (Probe* probe = tape.probe()) probe->attention = host_copy(context, *probe, out.weights);
  if (!tape.recording()) return projected();
  tape.record([&tape, &context, shape, memory, query, out, args, q, flops] {
    if (!out.context->gradient && !memory.guide) return;
    const Region back(context.profile, "attention, back", {2 * flops});
    Tensor dquery = context.empty(q);
    kernels::AttentionGradient g;
    g.dcontext = tape.gradient(*out.context);
    g.dquery = dquery.f32();
    g.dkeys = tape.gradient(*memory.keys);
    g.dmemory = tape.gradient(*memory.values);
    g.dv = shape.v ? shape.v->gradient.f32() : nullptr;
    dispatch(context, [&](const auto& backend) {
      const Tensor scratch = context.empty({kernels::attention_scratch(backend, args, q[0])});
      g.scratch = scratch.f32();
      kernels::attention_backward(backend, args, q[0], query->value.f32(), out.weights.f32(), g);
    });
    tape.accumulate(*query, std::move(dquery));
  });
  return projected();
}

}  // namespace nmt::ops
