#include "nn/builder.h"

#include "core/error.h"

#include <cmath>

namespace nmt {

Initializer Initializer::of(const ModelSpec& spec) {
  if (!(spec.init_scale >= 0) || !std::isfinite(spec.init_scale))
    fail(ExitStatus::usage, "init-scale: {} is below 0", spec.init_scale);
  const auto scale = [&](double usual) {
    return static_cast<float>(spec.init_scale > 0 ? spec.init_scale : usual);
  };
  if (spec.init == "standard") return {Kind::standard, scale(1)};
  if (spec.init == "orthogonal") return {Kind::orthogonal, scale(1)};
  if (spec.init == "glorot-uniform") return {Kind::glorot_uniform, scale(1)};
  if (spec.init == "uniform")
    return {Kind::uniform, scale(0.08)};  // Sutskever et al. 2014, section 3.4; ATR's recipe
  if (spec.init == "normal")
    return {Kind::normal, scale(0.01)};  // Bahdanau et al. 2015, appendix B.1
  fail(ExitStatus::usage,
       "init: '{}' is none of standard, orthogonal, glorot-uniform, uniform, normal", spec.init);
}

Parameter& Builder::add(const std::string& name, Shape shape, Init init, int planes) const {
  // What the layers take it for, however it is drawn.
  const bool is_matrix = (init == Init::glorot || init == Init::orthogonal) && shape[-1] > 1;
  const bool drawn = init != Init::zero && init != Init::one;
  if (drawn) {
    switch (initializer_.kind) {
      case Initializer::Kind::standard: break;
      // A table of embeddings is looked up, not multiplied with: there is nothing orthogonality
      // would keep.
      case Initializer::Kind::orthogonal:
        init = init == Init::embedding ? init : Init::orthogonal;
        break;
      case Initializer::Kind::glorot_uniform: init = Init::glorot; break;
      case Initializer::Kind::uniform: init = Init::uniform; break;
      case Initializer::Kind::normal: init = Init::normal; break;
    }
  }
  Parameter& parameter = parameters_->add(context_, prefix_ + name, shape, init, *rng_, planes,
                                          drawn ? initializer_.scale : 1.0f);
  parameter.role = role_;
  parameter.is_matrix = is_matrix;
  return parameter;
}

}  // namespace nmt
