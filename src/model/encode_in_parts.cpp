#include "autograd/ops/attention.h"
#include "autograd/ops/plain.h"
#include "kernels/attention/quantized_memory.h"
#include "kernels/pointwise.h"
#include "model/model_impl.h"

#include <algorithm>

namespace nmt {
namespace {

// Copies a part [S',n,W] into the columns of its sentences of the whole [S,B,W], made at the first
// call. What lies behind a sentence's end is never read.
void place(const Context& context, const Tensor& part, std::int64_t sentence, const Shape& shape,
           Tensor& whole) {
  if (!whole) whole = context.empty(shape);
  const std::int64_t steps = part.shape()[0], count = part.shape()[1], width = shape[2],
                     row = shape[1] * width;
  NMT_CHECK(steps <= shape[0] && sentence + count <= shape[1], "{} has no place in {} at {}",
            part.shape().text(), shape.text(), sentence);
  dispatch(context, [&](const auto& backend) {
    kernels::copy_columns(backend, steps, count * width, part.f32(), count * width,
                          whole.f32() + sentence * width, row, false);
  });
}

// The same for keys and values in int8, which lie sentence by sentence: a part has the first bytes
// of each.
void place(const Context& context, const ops::QuantizedMemory& part, std::int64_t sentence,
           std::int64_t sentences, std::int64_t steps, ops::QuantizedMemory& whole) {
  if (!whole.bytes) {
    whole = part;
    whole.steps = steps;
    whole.bytes = context.empty(
        {sentences, kernels::quantized_memory_bytes(steps, part.space, part.width, part.heads)},
        Dtype::i8);
  }
  const std::int64_t from = part.bytes.width(), to = whole.bytes.width();
  for (std::int64_t b = 0; b < part.bytes.shape()[0]; ++b)
    std::copy_n(part.bytes.data<std::int8_t>() + b * from, from,
                whole.bytes.data<std::int8_t>() + (sentence + b) * to);
}

}  // namespace

// The encoder's own values take several times the room of the memory that it leaves, so a batch
// passes through it in parts. A sentence's row depends on no other, so the parts give the very
// numbers of the whole.
Model::Impl::Encoded Model::Impl::encode_in_parts(Tape& tape, std::span<const Ids> sources,
                                                  std::int32_t bos, std::int32_t eos) const {
  const std::int64_t sentences = static_cast<std::int64_t>(sources.size());
  const std::int64_t rows_at_once = context.backend->encoder_rows;
  std::int64_t longest = 0;
  for (const Ids& source : sources)
    longest = std::max(longest, static_cast<std::int64_t>(source.size()) + 1);
  std::vector<std::int32_t> all_lengths;
  struct Whole {
    Tensor values, keys, exp_keys;
    ops::QuantizedMemory quantized;
  };
  std::vector<Whole> wholes;
  Tensor final_state;
  for (std::int64_t first = 0, count = 0; first < sentences; first += count) {
    std::vector<const Ids*> pointers;
    std::vector<std::int32_t> lengths;
    std::int64_t steps = 0;
    for (count = 0; first + count < sentences; ++count) {
      const Ids& source = sources[first + count];
      const std::int64_t length = static_cast<std::int64_t>(source.size()) + 1;  // with </s>
      if (count > 0 && std::max(steps, length) * (count + 1) > rows_at_once) break;
      steps = std::max(steps, length);
      pointers.push_back(&source);
      lengths.push_back(static_cast<std::int32_t>(length));
    }
    const Batch batch = make_batch(pointers, {}, bos, eos);
    all_lengths.insert(all_lengths.end(), lengths.begin(), lengths.end());
    const Encoded part = encode(tape, ops::send_symbols(tape, batch.source, {steps, count}),
                                upload(context, batch.source_mask, {steps, count}), lengths);
    if (count == sentences) return part;
    const auto place_memory = [&](const Tensor& of_part, Tensor& whole) {
      place(context, of_part, first, {longest, sentences, of_part.width()}, whole);
    };
    wholes.resize(part.memory.size());
    for (std::size_t i = 0; i < wholes.size(); ++i) {
      const ops::Memory& memory = part.memory[i];
      if (memory.values) place_memory(memory.values->value, wholes[i].values);
      if (memory.keys) place_memory(memory.keys->value, wholes[i].keys);
      if (memory.exp_keys) place_memory(memory.exp_keys, wholes[i].exp_keys);
      if (memory.quantized.bytes)
        place(context, memory.quantized, first, sentences, longest, wholes[i].quantized);
    }
    const Tensor& final_of_part = part.final_state->value;
    place(context, final_of_part.reshape({1, count, final_of_part.width()}), first,
          {1, sentences, final_of_part.width()}, final_state);
  }
  const auto constant = [&](const Tensor& whole) { return whole ? tape.constant(whole) : nullptr; };
  const Tensor lengths = upload(context, all_lengths, {sentences});
  SourceMemory memory;
  for (const Whole& whole : wholes)
    memory.push_back(
        {constant(whole.values), constant(whole.keys), lengths, whole.exp_keys, whole.quantized});
  return {std::move(memory), tape.constant(final_state.reshape({sentences, final_state.width()}))};
}

}  // namespace nmt
