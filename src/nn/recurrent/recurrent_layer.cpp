#include "nn/recurrent/recurrent_layer.h"

#include "autograd/ops/linear.h"
#include "kernels/recurrent/cudnn.h"
#include "kernels/recurrent/persistent.h"
#include "nn/recurrent/cell.h"
#include "nn/recurrent/head_layer.h"
#include "tensor/cuda_device.h"

#include <fmt/format.h>

namespace nmt {
namespace {

// For training, which needs both passes. The driver is only asked where the answer is used.
std::string why_not_persistent(const Context& context, const UnitSettings& settings) {
  const CudaDevice* const device = context.cuda.device;
  if (device && device->persistent() == PersistentUse::off) return "not asked for";
  const kernels::CellShape shape{settings.unit, settings.width, settings.groups,
                                 settings.rearrange && settings.groups > 1,
                                 settings.layer_normalization};
  return dispatch(context, [&](const auto& backend) {
    const std::string why = kernels::why_not_persistent(backend, shape, 1, false);
    return why.empty() ? kernels::why_not_persistent(backend, shape, 1, true) : why;
  });
}

}  // namespace

std::string why_not_cudnn(const UnitSettings& settings) {
  const kernels::Unit& unit = *settings.unit;
  if (kernels::cudnn_cell(unit) == kernels::CudnnCell::none)
    return fmt::format("the unit {}{}{}", unit.name, *unit.variant ? " " : "", unit.variant);
  if (settings.layer_normalization) return "layer normalization";
  if (settings.state_dropout > 0) return "dropout of the state";
  return settings.groups > 1 ? "groups" : "";
}

RecurrentLayer::RecurrentLayer(const Builder& builder, const UnitSettings& settings,
                               std::int64_t input)
    : convolution_(builder, settings.convolution, input),
      input_(builder, "input_projection", settings, input),
      cell_(make_cell(builder, settings)),
      state_dropout_(settings.state_dropout) {
  if (settings.unit->matrix_state)
    heads_ = std::make_shared<const HeadLayer>(builder, settings, input);
  const std::string cudnn_unsupported = why_not_cudnn(settings);
  builder.note_recurrence(cudnn_unsupported, why_not_persistent(builder.context(), settings));
  const kernels::Cudnn* const cudnn = builder.context().cudnn;
  if (cudnn && cudnn_unsupported.empty())
    cudnn_ = ops::CudnnLayer{cudnn, cell_, input_.weight, input_.bias};
}

void RecurrentLayer::prepare(const Tape& tape, const Var& x) const {
  const bool reads_x = !cudnn_ && !convolution_ && (input_.is_dense() || heads_);
  if (reads_x) tape.input(*x);
}

std::vector<Var> RecurrentLayer::operator()(Tape& tape, const Var& x,
                                            const std::vector<Var>& initial,
                                            const ops::PaddedSentences& sentences, bool reverse,
                                            std::int64_t position) const {
  const InputConvolution::Result in =
      convolution_(tape, x, initial, unit().states, sentences.mask, reverse);
  const auto run = [&](const ops::Cell& cell) {
    return ops::recurrence(tape, cell, input_.for_units(tape, in.x), in.initial, sentences.mask,
                           reverse, position);
  };
  std::vector<Var> states =
      cudnn_ ? ops::cudnn_layer(tape, *cudnn_, in.x, in.initial, sentences, reverse)
      : heads_
          ? (*heads_)(tape, cell_, in.x, input_(tape, in.x), in.initial, sentences.mask, reverse)
      : drops(tape, cell_, state_dropout_)
          ? run(with_dropout(tape, cell_, state_dropout_, x->value.shape()[1]))
          : run(cell_);
  if (in.last) states.push_back(in.last);
  return states;
}

std::int64_t RecurrentLayer::saved_floats() const {
  return convolution_.saved_floats() + input_.saved_floats() +
         (heads_ ? heads_->saved_floats() : nmt::saved_floats(cell_, state_dropout_));
}

void RecurrentLayer::freeze(const Context& context) const {
  if (cudnn_) return ops::freeze(context, *cudnn_);
  input_.freeze(context);
  ops::freeze(context, cell_);
  if (heads_) heads_->freeze(context);
}

}  // namespace nmt
