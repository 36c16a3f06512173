#include "nn/recurrent_layer.h"

#include "kernels/pointwise.h"
#include "kernels/recurrent/cudnn.h"
#include "kernels/recurrent/matrix_state.h"
#include "kernels/recurrent/persistent.h"
#include "nn/head_layer.h"
#include "tensor/cuda_device.h"

namespace nmt {

using Init = Builder::Init;
using kernels::BiasOf;

namespace {

// A matrix [in, planes*out], or the blocks of one whose planes are block-diagonal.
Parameter& add_matrix(const Builder& builder, const std::string& name, const UnitSettings& settings,
                      std::int64_t in, int planes, Init init) {
  const std::int64_t k = settings.groups, out = settings.width;
  if (k == 1) return builder.add(name, {in, planes * out}, init, planes);
  if (k < 1 || in % k != 0 || out % k != 0)
    fail(ExitStatus::usage,
         "groups: {} must divide both the width {} of what a layer reads and the width {} of its "
         "unit",
         k, in, out);
  return builder.add(name, {k, in / k, planes * out / k}, init, planes);
}

// Floats of one position that a cell keeps for its backward pass: its states, the products with
// them, with layer normalization their normalized values as well, the late value, rearranged
// states or those with dropout.
std::int64_t saved_by(const ops::Cell& cell, float state_dropout) {
  const kernels::Unit& unit = *cell.unit;
  const int products = unit.recurrents + unit.late;
  const bool rearranged = (cell.rearrange || state_dropout > 0) && unit.recurrents > 0;
  return cell.width * (unit.states + products * (cell.gain ? 2 : 1) + (unit.late > 0 ? 1 : 0) +
                       (rearranged ? 1 : 0));
}

// Whether a pass drops some of what the cell's products read.
bool drops(const Tape& tape, const ops::Cell& cell, float p) {
  return p > 0 && tape.recording() && cell.unit->has_recurrent_product();
}

// Sets the vectors [vectors,H] of a unit that starts them otherwise than at 0.
void start_vectors(const Builder& builder, const UnitSettings& settings, Parameter& vectors) {
  const kernels::Unit& unit = *settings.unit;
  if (!unit.vector_start) return;
  constexpr std::uint32_t use = 2;  // of the generator; gates have 1
  Rng rng = builder.generator(use);
  std::vector<float> values;
  for (int k = 0; k < unit.vectors; ++k)
    for (std::int64_t j = 0; j < settings.width; ++j)
      values.push_back(static_cast<float>(unit.vector_start(k, rng.uniform(), settings.place)));
  builder.set(vectors, values);
}

// The heads of a matrix-state unit and its trained rows [K,H].
void set_heads(const Builder& builder, const UnitSettings& settings, ops::Cell& cell) {
  const kernels::MatrixState& state = *settings.unit->matrix_state;
  const std::int64_t h = settings.width;
  const int k = settings.state_width;
  if (h % settings.heads() != 0)
    fail(ExitStatus::usage, "state-heads: {} does not divide the width {} of unit {}",
         settings.heads(), h, settings.unit->name);
  if (k < 1 || k > kernels::max_state_width)
    fail(ExitStatus::usage, "state-width: {} is not from 1 to {}", k, kernels::max_state_width);
  cell.heads = settings.heads();
  cell.state_width = k;
  if (state.rows == 0) return;
  cell.rows = &builder.add("rows", {k, h}, Init::zero);
  if (!state.row_start) return;
  std::vector<float> values;
  for (int i = 0; i < k; ++i)
    values.insert(values.end(), static_cast<std::size_t>(h),
                  static_cast<float>(state.row_start(i)));
  builder.set(*cell.rows, values);
}

// Layers with two units a step carry vectors from one to the other.
void refuse_matrix_state(const UnitSettings& settings, const char* layer, const char* instead) {
  if (settings.unit->matrix_state)
    fail(ExitStatus::usage, "unit {}: a unit with a matrix state does not run in {}; use {}",
         settings.unit->name, layer, instead);
}

// A cell with dropout of what its products read in a pass over `batch` sentences.
ops::Cell with_dropout(Tape& tape, const ops::Cell& cell, float p, std::int64_t batch) {
  ops::Cell dropped = cell;
  Tensor ones = tape.context().empty({1, batch, cell.width});
  dispatch(tape.context(),
           [&](const auto& backend) { kernels::fill(backend, ones.f32(), ones.elements(), 1.0f); });
  dropped.dropout = ops::dropout(tape, tape.constant(std::move(ones)), p)->value;
  return dropped;
}

}  // namespace

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
  weight = &add_matrix(builder, name, settings, input, planes_, Init::glorot);
  const kernels::Unit& unit = *settings.unit;
  if (settings.layer_normalization)
    normalization = Normalization(builder, name + "_norm", wide);
  else if (settings.bias || (unit.bias && !unit.has_recurrent_product()) ||
           settings.gates.reads(unit, BiasOf::input))
    bias = &builder.add(name + "_bias", {wide}, Init::zero);
  settings.gates.set(builder, unit, BiasOf::input, normalization ? normalization.bias : bias,
                     settings.width);
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

ops::Cell make_cell(const Builder& builder, const UnitSettings& settings) {
  const kernels::Unit& unit = *settings.unit;
  const std::int64_t h = settings.width;
  const int planes = unit.recurrents + unit.late;
  ops::Cell cell;
  cell.name = builder.scope();
  cell.unit = &unit;
  cell.width = h;
  cell.groups = settings.groups;
  cell.rearrange = settings.rearrange && settings.groups > 1;
  if (planes > 0) {
    cell.recurrent =
        &add_matrix(builder, "recurrent_projection", settings, h, planes, Init::orthogonal);
    if (settings.layer_normalization) {
      const Normalization norm(builder, "recurrent_projection_norm", planes * h);
      cell.gain = norm.gain;
      cell.norm_bias = norm.bias;
    } else if (unit.bias || settings.gates.reads(unit, BiasOf::state)) {
      cell.bias = &builder.add("recurrent_projection_bias", {planes * h}, Init::zero);
    }
  }
  if (unit.vectors > 0) {
    cell.vectors = &builder.add("vectors", {unit.vectors, h}, Init::zero);
    start_vectors(builder, settings, *cell.vectors);
  }
  if (unit.matrix_state) set_heads(builder, settings, cell);
  settings.gates.set(builder, unit, BiasOf::state, cell.norm_bias ? cell.norm_bias : cell.bias,
                     settings.width);
  settings.gates.set(builder, unit, BiasOf::vector, cell.vectors, h);
  if (unit.position_vectors > 0) {
    if (settings.positions < 1)
      fail(ExitStatus::usage,
           "positions: {}; unit {} trains vectors of each position and needs at least 1",
           settings.positions, unit.name);
    cell.positions =
        &builder.add("positions", {settings.positions, unit.position_vectors * h}, Init::one);
  }
  return cell;
}

std::string why_not_cudnn(const UnitSettings& settings) {
  const kernels::Unit& unit = *settings.unit;
  if (kernels::cudnn_cell(unit) == kernels::CudnnCell::none)
    return fmt::format("the unit {}{}{}", unit.name, *unit.variant ? " " : "", unit.variant);
  if (settings.layer_normalization) return "layer normalization";
  if (settings.state_dropout > 0) return "dropout of the state";
  return settings.groups > 1 ? "groups" : "";
}

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
         (heads_ ? heads_->saved_floats() : saved_by(cell_, state_dropout_));
}

void RecurrentLayer::freeze(const Context& context) const {
  if (cudnn_) return ops::freeze(context, *cudnn_);
  input_.freeze(context);
  ops::freeze(context, cell_);
  if (heads_) heads_->freeze(context);
}

TransitionLayer::TransitionLayer(const Builder& builder, const UnitSettings& settings,
                                 std::int64_t input, std::int64_t guide)
    : convolution_(Builder(builder, "lower"), settings.convolution, input),
      input_(Builder(builder, "lower"), "input_projection", settings, input),
      guide_(Builder(builder, "higher"), "input_projection", settings, guide),
      lower_(make_cell(Builder(builder, "lower"), settings)),
      higher_(make_cell(Builder(builder, "higher"), settings)),
      state_dropout_(settings.state_dropout) {
  refuse_matrix_state(settings, "context-aware layers", "context-aware: false");
  builder.note_recurrence("two units a step", "two units a step");
}

std::vector<Var> TransitionLayer::operator()(Tape& tape, const Var& x,
                                             const ops::Projections& guide,
                                             const std::vector<Var>& initial, const Tensor& mask,
                                             bool reverse, std::int64_t position) const {
  const InputConvolution::Result in =
      convolution_(tape, x, initial, lower_.unit->states, mask, reverse);
  const auto run = [&](const ops::Cell& lower, const ops::Cell& higher) {
    std::vector<Var> states = ops::transition(tape, lower, higher, input_.for_units(tape, in.x),
                                              guide, in.initial, mask, reverse, position);
    if (in.last) states.push_back(in.last);
    return states;
  };
  if (!drops(tape, lower_, state_dropout_)) return run(lower_, higher_);
  const std::int64_t batch = x->value.shape()[1];
  const ops::Cell lower = with_dropout(tape, lower_, state_dropout_, batch);
  return run(lower, with_dropout(tape, higher_, state_dropout_, batch));
}

std::int64_t TransitionLayer::saved_floats() const {
  return convolution_.saved_floats() + input_.saved_floats() + guide_.saved_floats() +
         saved_by(lower_, state_dropout_) + saved_by(higher_, state_dropout_);
}

void TransitionLayer::freeze(const Context& context) const {
  input_.freeze(context);
  guide_.freeze(context);
  ops::freeze(context, lower_);
  ops::freeze(context, higher_);
}

ConditionalLayer::ConditionalLayer(const Builder& builder, const UnitSettings& settings,
                                   std::int64_t input, std::int64_t memory, std::int64_t space,
                                   const ops::AttentionShape& attention)
    : convolution_(Builder(builder, "lower"), settings.convolution, input),
      input_(Builder(builder, "lower"), "input_projection", settings, input),
      context_(Builder(builder, "higher"), "input_projection", settings, memory),
      state_dropout_(settings.state_dropout) {
  refuse_matrix_state(settings, "the conditional decoder layer", "attention-query: first-layer");
  builder.note_recurrence("attention between two units", "attention between two units");
  layer_.lower = make_cell(Builder(builder, "lower"), settings);
  layer_.higher = make_cell(Builder(builder, "higher"), settings);
  layer_.attention = attention;
  layer_.query = &builder.add("attention.query_projection", {settings.width, space}, Init::glorot);
  layer_.context = context_.weight;
  layer_.context_bias = context_.bias;
  layer_.context_gain = context_.normalization.gain;
  layer_.context_norm_bias = context_.normalization.bias;
}

ops::ConditionalResult ConditionalLayer::operator()(Tape& tape, const Var& x,
                                                    const ops::Memory& memory,
                                                    const std::vector<Var>& initial,
                                                    const Tensor& sentence,
                                                    std::int64_t position) const {
  const InputConvolution::Result in =
      convolution_(tape, x, initial, layer_.lower.unit->states, {}, false);
  const auto run = [&](const ops::Conditional& layer) {
    ops::ConditionalResult result = ops::conditional(
        tape, layer, memory, input_.for_units(tape, in.x), in.initial, sentence, position);
    if (in.last) result.states.push_back(in.last);
    return result;
  };
  if (!drops(tape, layer_.lower, state_dropout_)) return run(layer_);
  const std::int64_t batch = x->value.shape()[1];
  ops::Conditional layer = layer_;
  layer.lower = with_dropout(tape, layer_.lower, state_dropout_, batch);
  layer.higher = with_dropout(tape, layer_.higher, state_dropout_, batch);
  return run(layer);
}

std::int64_t ConditionalLayer::saved_floats() const {
  return convolution_.saved_floats() + input_.saved_floats() + context_.saved_floats() +
         saved_by(layer_.lower, state_dropout_) + saved_by(layer_.higher, state_dropout_);
}

void ConditionalLayer::freeze(const Context& context) const {
  input_.freeze(context);
  context_.freeze(context);
  ops::freeze(context, layer_.lower);
  ops::freeze(context, layer_.higher);
  ops::freeze(context, *layer_.query);
}

}  // namespace nmt
