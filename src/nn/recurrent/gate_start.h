#pragma once

#include "config/enums/model_enums.h"
#include "kernels/recurrent/unit.h"
#include "nn/builder.h"

namespace nmt {

/// How the biases start that a unit declares in gate_biases (--gate-init). The values depend only
/// on the seed and on the name of the layer: all other parameters are those of `none`.
struct GateStart {
  GateInit kind = GateInit::none;
  double bias = 0;  ///< X of `constant`; 0: the unit's own
  int steps = 30;   ///< T of `chrono`

  /// X of the unit with `constant`.
  float constant_of(const kernels::Unit& unit) const;
  /// Whether a gate of the unit must have a bias of this kind: not if it would start at 0.
  bool reads(const kernels::Unit& unit, kernels::BiasOf of) const;
  /// Sets the gates' part of `parameter`, [planes*H]: the biases of that kind of the layer that the
  /// builder makes. Gates of one channel share a draw of `chrono`. Error (usage): T below 3.
  void set(const Builder& builder, const kernels::Unit& unit, kernels::BiasOf of,
           Parameter* parameter, std::int64_t width) const;
};

}  // namespace nmt
