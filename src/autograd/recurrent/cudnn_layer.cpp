#include "autograd/recurrent/cell.h"
#include "kernels/recurrent/cudnn.h"

#include <optional>

namespace nmt::ops {
namespace {

kernels::CudnnLayer shape_of(const CudnnLayer& layer) {
  return {layer.cell.unit, layer.input->shape[0], layer.cell.width};
}

kernels::CudnnWeights values_of(const CudnnLayer& layer) {
  return {value_of(layer.input), value_of(layer.input_bias), value_of(layer.cell.recurrent),
          value_of(layer.cell.bias)};
}
kernels::CudnnWeights gradients_of(Tape& tape, const CudnnLayer& layer) {
  return {tape.gradient(*layer.input), gradient_of(layer.input_bias),
          tape.gradient(*layer.cell.recurrent), gradient_of(layer.cell.bias)};
}

Tensor pack(const Context& context, const CudnnLayer& layer) {
  kernels::CudnnPass smallest;  // the size of the weights depends only on the layer
  smallest.layer = shape_of(layer);
  smallest.steps = smallest.batch = 1;
  Tensor packed = context.empty({layer.library->sizes(smallest).weights});
  const Region region(context.profile, "packing of recurrent weights",
                      {0, 8.0 * static_cast<double>(layer.input->shape.elements() +
                                                    layer.cell.recurrent->shape.elements())});
  layer.library->pack(smallest.layer, values_of(layer), packed.f32());
  return packed;
}

PartWork work(const CudnnLayer& layer, std::int64_t rows, bool back) {
  const auto weights =
      static_cast<double>(layer.input->shape.elements() + layer.cell.recurrent->shape.elements());
  return {(back ? 4.0 : 2.0) * static_cast<double>(rows) * weights};
}

// Describes the pass for cuDNN. Everything it points to must outlive it.
kernels::CudnnPass describe(const CudnnLayer& layer, const Var& x, const PaddedSentences& sentences,
                            bool reverse) {
  const Shape& shape = x->value.shape();
  kernels::CudnnPass pass;
  pass.layer = shape_of(layer);
  NMT_CHECK(shape.rank() == 3 && shape[2] == pass.layer.input, "a layer {} reads [T,B,{}], not {}",
            layer.cell.name, pass.layer.input, shape.text());
  pass.steps = shape[0];
  pass.batch = shape[1];
  pass.reverse = reverse;
  pass.x = x->value.f32();
  if (!sentences.mask) return pass;
  NMT_CHECK(static_cast<std::int64_t>(sentences.host_lengths.size()) == pass.batch &&
                sentences.lengths.elements() == pass.batch,
            "cuDNN: {} lengths for {} sentences", sentences.host_lengths.size(), pass.batch);
  pass.lengths = sentences.host_lengths.data();
  pass.device_lengths = sentences.lengths.data<std::int32_t>();
  return pass;
}

}  // namespace

void freeze(const Context& context, const CudnnLayer& layer) {
  const Cell& cell = layer.cell;
  for (Parameter* p : {layer.input, layer.input_bias, cell.recurrent, cell.bias})
    if (p) p->gradient = {};
  if (cell.recurrent->is_packed()) return;
  for (Parameter* p : {layer.input, layer.input_bias, cell.recurrent, cell.bias})
    if (p) p->load();
  cell.recurrent->packed = pack(context, layer);
  layer.input->drop_value();
  cell.recurrent->drop_value();
}

std::vector<Var> cudnn_layer(Tape& tape, const CudnnLayer& layer, const Var& x,
                             const std::vector<Var>& initial, const PaddedSentences& sentences,
                             bool reverse) {
  const Context& context = tape.context();
  const kernels::Unit& unit = *layer.cell.unit;
  NMT_CHECK(!tape.probe(), "{}: cannot record gates with cuDNN", layer.cell.name);
  NMT_CHECK(initial.empty() || static_cast<int>(initial.size()) == unit.states,
            "unit {} has {} states, not {}", unit.name, unit.states, initial.size());
  kernels::CudnnPass pass = describe(layer, x, sentences, reverse);
  pass.training = tape.recording();
  const std::int64_t batch = pass.batch, h = pass.layer.width;
  for (std::size_t p = 0; p < initial.size(); ++p) {
    NMT_CHECK(initial[p]->value.elements() == batch * h, "an initial state {} for {} rows of {}",
              initial[p]->value.shape().text(), batch, h);
    pass.initial[p] = initial[p]->value.f32();
  }
  const Tensor weights =
      layer.cell.recurrent->is_packed() ? layer.cell.recurrent->packed : pack(context, layer);
  const kernels::CudnnSizes sizes = layer.library->sizes(pass);
  pass.weights = weights.f32();
  std::vector<Var> states{tape.result(context.empty({pass.steps, batch, h}))};
  pass.h = states[0]->value.f32();
  if (unit.states > 1) {
    states.push_back(tape.constant(context.empty({1, batch, h})));
    pass.last_cell = states[1]->value.f32();
  }
  Tensor reserve;
  if (pass.training) reserve = context.empty({sizes.reserve});
  pass.reserve = pointer(reserve);
  {
    const Tensor scratch = context.empty({sizes.scratch});
    pass.scratch = scratch.f32();
    const Region region(context.profile, "recurrences by cuDNN",
                        work(layer, pass.steps * batch, false));
    layer.library->forward(pass);
  }

  if (!tape.recording()) return states;
  tape.record([&tape, &context, layer, x, initial, sentences, weights, reserve, states, pass,
               scratch_size = sizes.scratch]() mutable {
    if (!states[0]->gradient) return;
    if (pass.lengths) pass.lengths = sentences.host_lengths.data();  // point to this copy
    const Tensor scratch = context.empty({scratch_size}), dx = context.empty(x->value.shape());
    pass.scratch = scratch.f32();
    kernels::CudnnGradient g;
    g.dh = states[0]->gradient.f32();
    g.dx = dx.f32();
    g.weights = gradients_of(tape, layer);
    std::vector<Tensor> dinitial;
    if (!initial.empty()) dinitial = initial_gradients(context, layer.cell, pass.batch, g.dinitial);
    std::optional<Region> back(std::in_place, context.profile, "recurrences by cuDNN, back",
                               work(layer, pass.steps * pass.batch, true));
    layer.library->backward(pass, g);
    back.reset();
    states[0]->gradient = {};  // overwritten
    tape.accumulate(*x, dx);
    for (std::size_t p = 0; p < initial.size(); ++p) tape.accumulate(*initial[p], dinitial[p]);
  });
  return states;
}

}  // namespace nmt::ops
