#include "nn/recurrent/input_projection.h"

#include "autograd/ops/linear.h"
#include "core/error.h"

#include <utility>

namespace nmt {

Parameter& add_matrix(const Builder& builder, const std::string& name, const UnitSettings& settings,
                      std::int64_t in, int planes, Builder::Init init) {
  const std::int64_t k = settings.groups, out = settings.width;
  if (k == 1) return builder.add(name, {in, planes * out}, init, planes);
  if (k < 1 || in % k != 0 || out % k != 0)
    fail(ExitStatus::usage,
         "groups: {} must divide both the width {} of what a layer reads and the width {} of its "
         "unit",
         k, in, out);
  return builder.add(name, {k, in / k, planes * out / k}, init, planes);
}

InputProjection::InputProjection(const Builder& builder, const std::string& name,
                                 const UnitSettings& settings, std::int64_t input)
    : planes_(settings.unit->inputs),
      groups_(settings.groups),
      saved_floats_(settings.unit->inputs * settings.width *
                    (settings.layer_normalization ? 2 : 1)),
      rearrange_(settings.rearrange && settings.groups > 1),
      may_round_(settings.unit->late == 0 && !settings.unit->matrix_state) {
  if (rearrange_) saved_floats_ += input;
  const std::int64_t wide = settings.unit->inputs * settings.width;
  weight = &add_matrix(builder, name, settings, input, planes_, Builder::Init::glorot);
  const kernels::Unit& unit = *settings.unit;
  if (settings.layer_normalization)
    normalization = Normalization(builder, name + "_norm", wide);
  else if (settings.bias || (unit.bias && !unit.has_recurrent_product()) ||
           settings.gates.reads(unit, kernels::BiasOf::input))
    bias = &builder.add(name + "_bias", {wide}, Builder::Init::zero);
  settings.gates.set(builder, unit, kernels::BiasOf::input,
                     normalization ? normalization.bias : bias, settings.width);
}

Var InputProjection::operator()(Tape& tape, const Var& x) const {
  if (groups_ == 1 && normalization)
    return ops::linear_norm(tape, x, *weight, *normalization.gain, *normalization.bias, planes_,
                            may_round_);
  Var y = groups_ == 1 ? ops::linear(tape, x, *weight, bias)
                       : ops::block_linear(tape, rearrange_ ? ops::rearrange(tape, x, groups_) : x,
                                           *weight, planes_, bias);
  return normalization ? ops::layer_norm(tape, std::move(y), *normalization.gain,
                                         *normalization.bias, planes_)
                       : y;
}

bool InputProjection::leaves_norm(const Tape& tape, const Var& x) const {
  return normalization && !tape.recording() && !tape.probe() && x->value.shape()[0] == 1 &&
         !tape.context().backend->host_memory;
}

ops::Projections InputProjection::for_units(Tape& tape, const Var& x) const {
  if (groups_ > 1 || !leaves_norm(tape, x)) return (*this)(tape, x);
  return {ops::linear(tape, x, *weight), *normalization.gain, *normalization.bias};
}

std::vector<ops::Projections> InputProjection::for_units(
    Tape& tape, const std::vector<const InputProjection*>& projections, const Var& x) {
  std::vector<ops::Projections> all;
  std::vector<Parameter*> weights;
  for (const InputProjection* p : projections)
    if (p->groups_ == 1 && p->leaves_norm(tape, x)) weights.push_back(p->weight);
  if (weights.size() < projections.size()) {
    for (const InputProjection* p : projections) all.push_back(p->for_units(tape, x));
    return all;
  }
  std::vector<Var> products = ops::linear_of_each(tape, x, weights);
  for (std::size_t i = 0; i < products.size(); ++i) {
    const Normalization& norm = projections[i]->normalization;
    all.emplace_back(std::move(products[i]), *norm.gain, *norm.bias);
  }
  return all;
}

void InputProjection::join(const Context& context,
                           const std::vector<const InputProjection*>& projections) {
  std::vector<Parameter*> weights;
  for (const InputProjection* p : projections)
    if (p->groups_ == 1) weights.push_back(p->weight);
  ops::join_packed(context, weights);
}

void InputProjection::freeze(const Context& context) const {
  if (groups_ == 1)
    ops::freeze(context, *weight);
  else
    ops::freeze_blocks(context, *weight, planes_);
}

}  // namespace nmt
