#pragma once

#include "autograd/ops/recurrent.h"
#include "nn/builder.h"
#include "nn/recurrent/unit_settings.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nmt {

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

/// A matrix [in, planes*width], or the blocks of one whose planes are block-diagonal.
Parameter& add_matrix(const Builder& builder, const std::string& name, const UnitSettings& settings,
                      std::int64_t in, int planes, Builder::Init init);

}  // namespace nmt
