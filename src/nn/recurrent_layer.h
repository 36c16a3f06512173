#pragma once

#include "autograd/ops.h"
#include "nn/builder.h"
#include "nn/gate_start.h"
#include "nn/input_convolution.h"

#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace nmt {

/// Settings shared by all recurrent layers of a model.
struct UnitSettings {
  const kernels::Unit* unit = nullptr;
  std::int64_t width = 0;  ///< H
  bool layer_normalization = false;
  /// Whether xW has a bias; ignored with layer normalization, which has its own.
  bool bias = false;
  /// K: W and U are block-diagonal with K blocks (Gao et al., NAACL 2018, section 2.1).
  std::int64_t groups = 1;
  /// Whether x and h' are rearranged before W and U (section 2.2); the states keep their order.
  bool rearrange = false;
  std::int64_t positions = 0;  ///< rows of a unit's position vectors
  GateStart gates = {};
  /// Probability of dropout of what the recurrent products read; one mask for all steps of a
  /// sentence (Gal & Ghahramani, NeurIPS 2016, section 4.2).
  float state_dropout = 0;
  int convolution = 0;             ///< taps of the InputConvolution of the layer's input; 0: none
  std::int64_t state_heads = 0;    ///< N, of a matrix-state unit; 0: heads() chooses
  int state_width = 0;             ///< K, numbers of the matrix state per channel
  kernels::LayerPlace place = {};  ///< what starts of trained vectors may depend on

  /// N; by default 4, or the largest smaller number of heads that divides H.
  std::int64_t heads() const {
    return state_heads > 0 ? state_heads : std::gcd(std::int64_t{4}, width);
  }
  /// Floats per row of state vector p.
  std::int64_t state_floats(int p) const {
    return p == 1 && unit->matrix_state
               ? unit->matrix_state->memory_width(width, heads(), state_width)
               : width;
  }

  /// The same settings for a layer of a stack.
  UnitSettings at(int layer, int layers) const {
    UnitSettings settings = *this;
    settings.place = {layer, layers};
    return settings;
  }
};

/// xW for all planes of a unit, with bias or layer normalization of each plane: [.., inputs*H] for
/// all steps in one matmul, batched over the groups. Error (usage): groups do not divide the width
/// of the input or of the unit.
class InputProjection {
 public:
  InputProjection(const Builder& builder, const std::string& name, const UnitSettings& settings,
                  std::int64_t input);
  Var operator()(Tape& tape, const Var& x) const;
  /// The same for ops::recurrence() and the like: a single step on a device normalizes itself.
  ops::Projections for_units(Tape& tape, const Var& x) const;
  /// for_units() of several projections of one x: one product where they are alike and have been
  /// joined.
  static std::vector<ops::Projections> for_units(
      Tape& tape, const std::vector<const InputProjection*>& projections, const Var& x);
  /// Lets for_units() compute several frozen projections as one product.
  static void join(const Context& context, const std::vector<const InputProjection*>& projections);
  /// Whether it is a dense product, without groups.
  bool is_dense() const { return groups_ == 1; }
  /// Floats per position that training saves for the backward pass: the product; with layer
  /// normalization also the output; and rearranged inputs.
  std::int64_t saved_floats() const { return saved_floats_; }
  void freeze(const Context& context) const;

  Parameter* weight = nullptr;  ///< [input, inputs*H], or with groups [K, input/K, inputs*H/K]
  Parameter* bias = nullptr;    ///< [inputs*H] or null
  Normalization normalization;  ///< [inputs*H] or none

 private:
  bool leaves_norm(const Tape& tape, const Var& x) const;

  int planes_;
  std::int64_t groups_, saved_floats_;
  bool rearrange_, may_round_;
};

/// The recurrent parameters of a unit: recurrent_projection [H,(recurrents+late)*H], with groups
/// [K,H/K,(recurrents+late)*H/K], its bias or normalization, vectors.
ops::Cell make_cell(const Builder& builder, const UnitSettings& settings);

/// Why cuDNN does not support a layer with these settings; empty if it does.
std::string why_not_cudnn(const UnitSettings& settings);

class HeadLayer;

/// One recurrent layer in one direction. cuDNN runs it where the builder's context carries cuDNN
/// and why_not_cudnn() has no objection; otherwise our own kernels do.
class RecurrentLayer {
 public:
  RecurrentLayer(const Builder& builder, const UnitSettings& settings, std::int64_t input);
  /// x [T,B,input] -> the states after each step, [T,B,H] per state vector (cuDNN returns only the
  /// last step of the second, [1,B,H], and a matrix-state unit that of its memory, [1,B,W]), then
  /// InputConvolution::Result::last if there is one. position: that of step 0 in the sentence.
  /// initial: none, or [B,H] per state vector and, after other steps, their last.
  std::vector<Var> operator()(Tape& tape, const Var& x, const std::vector<Var>& initial,
                              const ops::PaddedSentences& sentences, bool reverse = false,
                              std::int64_t position = 0) const;
  std::int64_t width() const { return cell_.width; }
  const kernels::Unit& unit() const { return *cell_.unit; }
  /// The matrix of the recurrent products, or null.
  Parameter* recurrent_weights() const { return cell_.recurrent; }
  /// Estimate of the floats per position that training saves for the backward pass.
  std::int64_t saved_floats() const;
  void freeze(const Context& context) const;
  /// Whether two layers may run at the same time on branches of a stream; cuDNN has one stream.
  bool can_branch() const { return !cudnn_; }
  /// Before two layers read x on such branches.
  void prepare(const Tape& tape, const Var& x) const;

  const InputConvolution& convolution() const { return convolution_; }

 private:
  InputConvolution convolution_;
  InputProjection input_;
  ops::Cell cell_;
  float state_dropout_;
  std::shared_ptr<const HeadLayer> heads_;  // of a matrix-state unit
  std::optional<ops::CudnnLayer> cudnn_;
};

/// A layer with two units per step, the second over a given sequence
/// (kernels/recurrent/transition.h).
class TransitionLayer {
 public:
  TransitionLayer(const Builder& builder, const UnitSettings& settings, std::int64_t input,
                  std::int64_t guide);
  /// x [T,B,input], guide [T,B,guide] projected by guide() -> the states of the higher unit after
  /// each step and `last` of x as RecurrentLayer.
  std::vector<Var> operator()(Tape& tape, const Var& x, const ops::Projections& guide,
                              const std::vector<Var>& initial, const Tensor& mask,
                              bool reverse = false, std::int64_t position = 0) const;
  const InputProjection& guide() const { return guide_; }
  /// As RecurrentLayer::saved_floats().
  std::int64_t saved_floats() const;
  void freeze(const Context& context) const;

 private:
  InputConvolution convolution_;
  InputProjection input_, guide_;
  ops::Cell lower_, higher_;
  float state_dropout_;
};

/// The conditional decoder layer with attention between its two units (Zhang et al.,
/// ATR, EMNLP 2018, section 4.1).
class ConditionalLayer {
 public:
  /// memory: M; space: A.
  ConditionalLayer(const Builder& builder, const UnitSettings& settings, std::int64_t input,
                   std::int64_t memory, std::int64_t space, const ops::AttentionShape& attention);
  /// The states as RecurrentLayer.
  ops::ConditionalResult operator()(Tape& tape, const Var& x, const ops::Memory& memory,
                                    const std::vector<Var>& initial, const Tensor& sentence,
                                    std::int64_t position = 0) const;
  /// As RecurrentLayer::saved_floats(), without those of attention.
  std::int64_t saved_floats() const;
  void freeze(const Context& context) const;

 private:
  InputConvolution convolution_;
  InputProjection input_, context_;
  ops::Conditional layer_;
  float state_dropout_;
};

}  // namespace nmt
