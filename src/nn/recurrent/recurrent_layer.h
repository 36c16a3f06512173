#pragma once

#include "autograd/ops/recurrent.h"
#include "nn/builder.h"
#include "nn/recurrent/input_convolution.h"
#include "nn/recurrent/input_projection.h"
#include "nn/recurrent/unit_settings.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace nmt {

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

}  // namespace nmt
