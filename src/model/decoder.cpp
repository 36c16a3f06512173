#include "model/decoder.h"

#include "autograd/ops/linear.h"
#include "autograd/ops/plain.h"
#include "kernels/pointwise.h"
#include "model/block/block_decoder.h"
#include "model/check.h"

namespace nmt {

using Init = Builder::Init;

namespace {

std::string layer_name(std::size_t layer) {
  return "layer_" + std::to_string(layer);
}

}  // namespace

std::unique_ptr<Decoder> Decoder::make(const Builder& builder, const ModelSpec& spec,
                                       std::int64_t memory_width, std::int64_t final_width) {
  if (architecture_of(spec).has_blocks())
    return std::make_unique<BlockDecoder>(builder, spec, memory_width);
  return std::make_unique<StackedDecoder>(builder, spec, memory_width, final_width);
}

std::vector<Var> start_states(Tape& tape, const UnitSettings& settings, std::int64_t rows) {
  std::vector<Var> states;
  for (int p = 0; p < settings.unit->states; ++p) {
    Tensor state = tape.context().empty({rows, settings.state_floats(p)});
    dispatch(tape.context(), [&](const auto& backend) {
      kernels::fill(backend, state.f32(), state.elements(), settings.unit->state_start(p));
    });
    states.push_back(tape.constant(std::move(state)));
  }
  return states;
}

StackedDecoder::StackedDecoder(const Builder& builder, const ModelSpec& spec,
                               std::int64_t memory_width, std::int64_t final_width)
    : architecture_(architecture_of(spec)),
      settings_(unit_settings(spec, spec.dec_cell)),
      dropout_(static_cast<float>(spec.dropout_rnn)),
      dropout_readout_(static_cast<float>(spec.dropout_readout)),
      upper_context_(spec.upper_context),
      embedding_(spec.dim_emb),
      layers_(static_cast<std::size_t>(spec.dec_depth)) {
  const std::int64_t m = spec.attention == AttentionType::none ? 0 : memory_width;
  make_layers(builder, spec, m);
  if (architecture_.initial_state != InitialState::zero)
    make_initial_states(builder.at(Parameter::Role::initial_states), spec.dec_depth, final_width);
  make_readout(builder.at(Parameter::Role::readout), spec, m);
}

// Groups need not begin in the first layer (Gao et al., NAACL 2018, footnote 2).
UnitSettings StackedDecoder::first_settings(const ModelSpec& spec) const {
  UnitSettings settings = settings_.at(0, spec.dec_depth);
  if (spec.dense_first_decoder_layer) {
    settings.groups = 1;
    settings.rearrange = false;
  }
  return settings;
}

void StackedDecoder::make_attention(const Builder& first, const ModelSpec& spec, std::int64_t m) {
  const std::int64_t space = spec.dim_attention > 0 ? spec.dim_attention : m;
  const std::int64_t values = spec.attention_projections ? space : m;
  if (space % spec.heads != 0 || values % spec.heads != 0)
    fail(ExitStatus::usage,
         "heads: {} must divide the attention space {} and the memory's width {}", spec.heads,
         space, values);
  attention_.kind = spec.attention == AttentionType::dot ? kernels::AttentionKind::dot
                                                         : kernels::AttentionKind::additive;
  attention_.heads = spec.heads;
  memory_projection_ = &first.at(Parameter::Role::attention_keys)
                            .add("attention.memory_projection", {m, space}, Init::glorot);
  if (attention_.kind == kernels::AttentionKind::additive)
    attention_.v = &first.add("attention.v", {space, 1}, Init::glorot);
  if (spec.attention_projections) {
    value_projection_ = &first.at(Parameter::Role::attention_keys)
                             .add("attention.value_projection", {m, space}, Init::glorot);
    attention_.output = &first.add("attention.output_projection", {space, m}, Init::glorot);
  }
  if (queries_recurrently(spec)) {
    conditional_.emplace(first, first_settings(spec), spec.dim_emb, m, space, attention_);
  } else {
    first_.emplace(first, first_settings(spec), spec.dim_emb);
    query_ = &first.add("attention.query_projection", {spec.dim_rnn, space}, Init::glorot);
  }
}

void StackedDecoder::make_layers(const Builder& builder, const ModelSpec& spec, std::int64_t m) {
  const std::int64_t e = spec.dim_emb, h = spec.dim_rnn;
  const std::int64_t below = architecture_.output_width(spec);
  for (std::size_t layer = 0; layer < layers_; ++layer) {
    const Builder at(builder, layer_name(layer));
    const UnitSettings upper = settings_.at(static_cast<int>(layer), spec.dec_depth);
    if (layer == 0 && m > 0)
      make_attention(at, spec, m);
    else if (layer == 0)
      first_.emplace(at, first_settings(spec), e);
    else if (spec.context_aware)
      aware_.emplace_back(at, upper, below, m);
    else
      upper_.emplace_back(at, upper, below + (upper_context_ ? m : 0));
    if (architecture_.is_projected()) residuals_.emplace_back(at, h, e, spec.layer_normalization);
  }
  for (const TransitionLayer& layer : aware_)
    higher_projections_.push_back(&layer.higher_projection());
}

void StackedDecoder::make_readout(const Builder& builder, const ModelSpec& spec, std::int64_t m) {
  const std::int64_t e = spec.dim_emb;
  features_ = architecture_.output_width(spec);
  if (architecture_.readout == ReadoutKind::none) return;
  features_ += m + (architecture_.readout == ReadoutKind::states_context_input ? e : 0);
  readout_ = &builder.add("readout", {features_, e}, Init::glorot);
  if (spec.layer_normalization)
    readout_normalization_ = Normalization(builder, "readout_norm", e);
  else
    readout_bias_ = &builder.add("readout_bias", {e}, Init::zero);
}

void StackedDecoder::make_initial_states(const Builder& builder, std::int64_t layers,
                                         std::int64_t from) {
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    for (int state = 0; state < settings_.unit->initial_states(); ++state) {
      const std::string name =
          layer_name(static_cast<std::size_t>(layer)) + ".initial_state_" + std::to_string(state);
      initial_.push_back(&builder.add(name, {from, settings_.width}, Init::glorot));
      initial_bias_.push_back(&builder.add(name + "_bias", {settings_.width}, Init::zero));
    }
  }
}

SourceMemory StackedDecoder::remember(Tape& tape, const Var& annotations,
                                      const Tensor& lengths) const {
  if (!memory_projection_) return {{nullptr, nullptr, lengths, {}}};
  const Var keys = ops::linear_for_attention(tape, annotations, *memory_projection_);
  Var values = annotations;
  if (value_projection_)
    values = ops::linear_for_attention(tape, annotations, *value_projection_);
  else if (!tape.recording())  // without the copy that the product of the keys has read
    values = tape.constant(annotations->value);
  return {ops::remember(tape, attention_, std::move(values), keys, lengths)};
}

DecoderState StackedDecoder::start(Tape& tape, const Var& final_state) const {
  const std::size_t states = static_cast<std::size_t>(settings_.unit->initial_states());
  DecoderState start(layers_);
  if (initial_.empty()) {
    for (std::vector<Var>& layer : start)
      layer = start_states(tape, settings_, final_state->value.rows());
    return start;
  }
  for (std::size_t i = 0; i < layers_ * states; ++i) {
    Var mapped = ops::linear(tape, final_state, *initial_[i], initial_bias_[i]);
    start[i / states].push_back(architecture_.initial_state == InitialState::tanh
                                    ? ops::tanh(tape, std::move(mapped))
                                    : mapped);
  }
  return start;
}

std::vector<Var> StackedDecoder::first_layer(Tape& tape, const Var& y, const ops::Memory& memory,
                                             const std::vector<Var>& initial,
                                             const Tensor& sentence, std::int64_t position,
                                             ops::Attended& attended) const {
  if (conditional_) {
    ops::ConditionalResult out = (*conditional_)(tape, y, memory, initial, sentence, position);
    attended = out.attended;
    return out.states;
  }
  const std::vector<Var> states = (*first_)(tape, y, initial, {}, false, position);
  if (query_)
    attended =
        ops::attention(tape, attention_, memory, ops::linear(tape, states[0], *query_), sentence);
  return states;
}

std::vector<Var> StackedDecoder::upper_layer(Tape& tape, std::size_t layer, const Var& x,
                                             const Var& c,
                                             const std::vector<ops::Projections>& higher_xs,
                                             const std::vector<Var>& initial,
                                             std::int64_t position) const {
  const float p = architecture_.is_projected() ? 0.0f : dropout_;
  if (!aware_.empty()) {
    const TransitionLayer& aware = aware_[layer - 1];
    const Var in = ops::dropout(tape, x, p);
    return aware(
        tape, in,
        higher_xs.empty() ? aware.higher_projection().for_units(tape, c) : higher_xs[layer - 1],
        initial, {}, false, position);
  }
  const Var input = c && upper_context_ ? ops::concat(tape, {x, c}) : x;
  return upper_[layer - 1](tape, ops::dropout(tape, input, p), initial, {}, false, position);
}

static bool is_step_on_device(const Tape& tape, const Var& y) {
  return !tape.recording() && y->value.shape()[0] == 1 && !tape.context().backend->host_memory;
}

StackedDecoder::Result StackedDecoder::operator()(Tape& tape, const Var& y,
                                                  const SourceMemory& memory,
                                                  const DecoderState& state,
                                                  const Tensor& sentence) const {
  Result result;
  // Stays 0 without position vectors, so that all steps run identical work (tensor/repeat.h).
  if (settings_.unit->position_vectors > 0)
    result.state.position = state.position + y->value.shape()[0];
  Var x = y, c;  // x: what the layer below gives
  std::vector<ops::Projections> higher_xs;
  for (std::size_t layer = 0; layer < layers_; ++layer) {
    ops::Attended attended;
    const std::vector<Var> states =
        layer == 0 ? first_layer(tape, y, memory[0], state[0], sentence, state.position, attended)
                   : upper_layer(tape, layer, x, c, higher_xs, state[layer], state.position);
    if (layer == 0) {
      c = attended.context;
      if (is_step_on_device(tape, y) && !higher_projections_.empty())
        higher_xs = InputProjection::for_units(tape, higher_projections_, c);
      result.weights = attended.weights;
    }
    std::vector<Var>& kept = result.state.emplace_back();
    if (!tape.recording())  // training runs all steps at once
      for (const Var& s : states) kept.push_back(ops::step(tape, s, s->value.shape()[0] - 1));
    if (architecture_.is_projected())
      x = residuals_[layer](tape, x, states[0], dropout_);
    else
      x = architecture_.adds_input(static_cast<int>(layer)) ? ops::add(tape, states[0], x)
                                                            : states[0];
  }
  if (architecture_.drops_top()) x = ops::dropout(tape, x, dropout_);
  result.features = x;
  if (architecture_.readout == ReadoutKind::none) return result;
  std::vector<Var> read{x};
  if (c) read.push_back(c);
  if (architecture_.readout == ReadoutKind::states_context_input) read.push_back(y);
  result.features = ops::concat(tape, read);
  return result;
}

std::int64_t StackedDecoder::saved_floats(std::int64_t source_tokens) const {
  const bool projected = architecture_.is_projected();
  const std::int64_t h = settings_.width;
  const auto dropped = [&](std::int64_t width) { return dropout_ > 0 && !projected ? width : 0; };
  std::int64_t sum = conditional_ ? conditional_->saved_floats() : first_->saved_floats(), m = 0;
  if (memory_projection_) {
    m = memory_projection_->shape[0];
    sum += memory_projection_->shape[1] + m + attention_.heads * source_tokens;
    if (attention_.output) sum += attention_.output->shape[0];
  }
  for (const Residual& residual : residuals_) sum += residual.saved_floats(dropout_ > 0);
  const std::int64_t below = projected ? embedding_ : h;
  for (const TransitionLayer& layer : aware_) sum += layer.saved_floats() + dropped(below);
  const std::int64_t concatenated = m > 0 && upper_context_ ? below + m : 0;
  for (const RecurrentLayer& layer : upper_)
    sum += layer.saved_floats() + concatenated + dropped(concatenated > 0 ? concatenated : below);
  for (std::size_t layer = 0; layer < layers_; ++layer)
    if (architecture_.adds_input(static_cast<int>(layer))) sum += h;
  if (architecture_.drops_top()) sum += dropped(h);
  sum += 2 * features_;  // of all positions, then of the real tokens
  if (readout_) sum += embedding_ * (readout_normalization_ ? 3 : 2);
  if (dropout_readout_ > 0) sum += embedding_;
  return sum + embedding_ + features_;  // their gradients when the backward pass begins
}

std::int64_t StackedDecoder::saved_source_floats() const {
  if (!memory_projection_) return 0;
  // Additive attention keeps the exponentials of the keys as well (attention_exp_keys).
  const int keys = attention_.kind == kernels::AttentionKind::additive ? 2 : 1;
  return keys * memory_projection_->shape[1] +
         (value_projection_ ? value_projection_->shape[1] : 0);
}

Var StackedDecoder::readout(Tape& tape, const Var& features, const Tensor& rows) const {
  if (!readout_) return ops::dropout(tape, features, dropout_readout_, rows);
  Var out = ops::linear(tape, features, *readout_, readout_bias_);
  if (readout_normalization_)
    out = ops::layer_norm(tape, std::move(out), *readout_normalization_.gain,
                          *readout_normalization_.bias);
  return ops::dropout(tape, ops::tanh(tape, std::move(out)), dropout_readout_, rows);
}

void StackedDecoder::freeze(const Context& context) const {
  for (Parameter* p : initial_) ops::freeze(context, *p);
  if (memory_projection_) ops::freeze(context, *memory_projection_);
  if (value_projection_) ops::freeze(context, *value_projection_);
  if (attention_.output) ops::freeze(context, *attention_.output);
  if (query_) ops::freeze(context, *query_);
  if (conditional_) conditional_->freeze(context);
  if (first_) first_->freeze(context);
  for (const RecurrentLayer& layer : upper_) layer.freeze(context);
  for (const TransitionLayer& layer : aware_) layer.freeze(context);
  InputProjection::join(context, higher_projections_);
  for (const Residual& residual : residuals_) residual.freeze(context);
  if (readout_) ops::freeze(context, *readout_);
}

}  // namespace nmt
