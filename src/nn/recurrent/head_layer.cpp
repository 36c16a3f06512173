#include "nn/recurrent/head_layer.h"

#include "autograd/ops/linear.h"
#include "kernels/recurrent/matrix_state.h"

namespace nmt {

using Init = Builder::Init;

HeadLayer::HeadLayer(const Builder& builder, const UnitSettings& settings, std::int64_t input)
    : heads_(static_cast<int>(settings.heads())) {
  const kernels::MatrixState& state = *settings.unit->matrix_state;
  const int k = settings.state_width;
  const std::int64_t one = state.planes * k + state.scalars, wide = heads_ * one;
  weight_ = &builder.add("head_projection", {input, wide}, Init::glorot);
  bias_ = &builder.add("head_projection_bias", {wide}, Init::zero);
  if (state.bias_start) {
    constexpr std::uint32_t use = 3;  // of the generator; gates have 1, vectors 2
    Rng rng = builder.generator(use);
    std::vector<float> values;
    for (std::int64_t head = 0; head < heads_; ++head)
      for (std::int64_t i = 0; i < one; ++i) {
        const auto plane = i < state.planes * k ? i / k : state.planes + i - state.planes * k;
        values.push_back(
            static_cast<float>(state.bias_start(static_cast<int>(plane), rng.uniform())));
      }
    builder.set(*bias_, values);
  }
  if (state.normalizes) normalization_ = Normalization(builder, "head_norm", settings.width);
  // The projection; h, with normalization twice; what the heads compute; kept states.
  saved_floats_ = wide + settings.width * (state.normalizes ? 2 : 1) +
                  heads_ * (3 * k + state.extras + state.head_memory(k)) +
                  settings.width * k / kernels::matrix_stride + 1;
}

std::vector<Var> HeadLayer::operator()(Tape& tape, const ops::Cell& cell, const Var& x,
                                       const Var& projected, const std::vector<Var>& initial,
                                       const Tensor& mask, bool reverse) const {
  std::vector<Var> states = ops::matrix_recurrence(
      tape, cell, projected, ops::linear(tape, x, *weight_, bias_), initial, mask, reverse);
  if (normalization_)
    states[0] =
        ops::layer_norm(tape, states[0], *normalization_.gain, *normalization_.bias, heads_);
  return states;
}

void HeadLayer::freeze(const Context& context) const {
  ops::freeze(context, *weight_);
}

}  // namespace nmt
