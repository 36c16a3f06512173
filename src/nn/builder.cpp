#include "nn/builder.h"

#include "core/error.h"
#include "core/hash/checksum.h"
#include "tensor/copy.h"

#include <cmath>

namespace nmt {

Initializer Initializer::of(const ModelSpec& spec) {
  if (!(spec.init_scale >= 0) || !std::isfinite(spec.init_scale))
    fail(ExitStatus::usage, "init-scale: {} is below 0", spec.init_scale);
  const auto scale = [&](double usual) {
    return static_cast<float>(spec.init_scale > 0 ? spec.init_scale : usual);
  };
  switch (spec.init) {
    // Sutskever et al. 2014, section 3.4; ATR's recipe.
    case Initialization::uniform: return {spec.init, scale(0.08)};
    // Bahdanau et al. 2015, appendix B.1.
    case Initialization::normal: return {spec.init, scale(0.01)};
    default: return {spec.init, scale(1)};
  }
}

Parameter& Builder::add(const std::string& name, Shape shape, Init init, int planes) const {
  // What the layers take it for, however it is drawn.
  const bool is_matrix = (init == Init::glorot || init == Init::orthogonal) && shape[-1] > 1;
  const bool drawn = init != Init::zero && init != Init::one;
  if (drawn) {
    switch (initializer_.kind) {
      case Initialization::standard: break;
      // A table of embeddings is looked up, not multiplied with: there is nothing orthogonality
      // would keep.
      case Initialization::orthogonal:
        init = init == Init::embedding ? init : Init::orthogonal;
        break;
      case Initialization::glorot_uniform: init = Init::glorot; break;
      case Initialization::uniform: init = Init::uniform; break;
      case Initialization::normal: init = Init::normal; break;
    }
  }
  Parameter& parameter = parameters_->add(context_, prefix_ + name, shape, init, *rng_, planes,
                                          drawn ? initializer_.scale : 1.0f);
  parameter.role = role_;
  parameter.is_matrix = is_matrix;
  return parameter;
}

void Builder::set(Parameter& parameter, std::span<const float> values) const {
  if (parameter.gradient) upload(context_, values, parameter.value);
}

Rng Builder::generator(std::uint32_t use) const {
  return Rng(rng_->seed(), std::uint64_t{use} << 32 | crc32(prefix_));
}

}  // namespace nmt
