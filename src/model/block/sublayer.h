#pragma once

#include "autograd/ops/linear.h"
#include "autograd/ops/plain.h"
#include "nn/builder.h"

#include <cmath>
#include <string>
#include <utility>

namespace nmt {

/// The pre-norm residual connection around a part f of a layer: x + dropout(f(LN(x))).
class Sublayer {
 public:
  Sublayer(const Builder& builder, const std::string& name, std::int64_t width)
      : norm_(builder, name + "_norm", width), width_(width) {}
  Var normalize(Tape& tape, const Var& x) const {
    return ops::layer_norm(tape, x, *norm_.gain, *norm_.bias);
  }
  static Var add(Tape& tape, Var x, Var f, float dropout) {
    f = ops::dropout(tape, f, dropout);
    return ops::add(tape, std::move(x), f);
  }
  /// As RecurrentLayer::saved_floats(), without those of f.
  std::int64_t saved_floats(bool drops) const { return width_ * (drops ? 3 : 2); }

 private:
  Normalization norm_;
  std::int64_t width_;
};

/// The initial scale of matrices that write to the residual sum of a layer, counted from 0: by
/// depth, as Zhang et al. (EMNLP 2019, eq. 8) scale all matrices.
inline float depth_scale(int layer) {
  return 1.0f / std::sqrt(static_cast<float>(layer + 1));
}

/// Inner width of feed-forward layers.
inline std::int64_t feed_forward_width(const ModelSpec& spec) {
  return spec.block.feed_forward_width > 0 ? spec.block.feed_forward_width : 4 * spec.dim_emb;
}

}  // namespace nmt
