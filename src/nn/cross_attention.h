#pragma once

#include "autograd/ops/attention.h"
#include "nn/builder.h"

#include <cstdint>

namespace nmt {

/// Multi-head attention of a decoder layer over an encoded source, with projections of queries,
/// keys, values and the heads' outputs (Vaswani et al. 2017, section 3.2.2; the score may be
/// additive).
class CrossAttention {
 public:
  struct Settings {
    kernels::AttentionKind kind = kernels::AttentionKind::additive;
    std::int64_t heads = 1;
    std::int64_t space = 0;  ///< A
  };
  /// `width`: of queries and outputs; `memory`: of the annotations. `output_scale` multiplies the
  /// initial values of the output projection. Error (usage): the heads do not divide the space.
  CrossAttention(const Builder& builder, const Settings& settings, std::int64_t width,
                 std::int64_t memory, float output_scale = 1.0f);
  /// Keys and values of the annotations [S,B,M].
  ops::Memory remember(Tape& tape, const Var& annotations, const Tensor& lengths) const;
  /// x [T,B,E] -> the context [T,B,E] and the weights. sentence: as ops::attention().
  ops::Attended operator()(Tape& tape, const Var& x, const ops::Memory& memory,
                           const Tensor& sentence) const;
  /// As RecurrentLayer::saved_floats(), for a target position with a source of this length, and for
  /// a source position.
  std::int64_t saved_floats(std::int64_t source_tokens) const;
  std::int64_t saved_source_floats() const;
  void freeze(const Context& context) const;

 private:
  ops::AttentionShape shape_;
  Parameter* keys_ = nullptr;    // [M,A]
  Parameter* values_ = nullptr;  // [M,A]
  Parameter* query_ = nullptr;   // [E,A]
};

}  // namespace nmt
