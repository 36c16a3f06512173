#pragma once

#include "autograd/ops/recurrent.h"
#include "nn/recurrent/recurrent_layer.h"

#include <optional>
#include <vector>

namespace nmt {

enum class UnitDirection { forward, backward, both };

/// A recurrent unit whose output is gated and projected (De et al. 2024, section 2.3; the
/// convolution before the unit is UnitSettings::convolution): (activation(x G) * unit(x)) O, from
/// width E to E; without a gate branch unit(x) O. O may be left out, as for SSRU in Kim et al.
/// (WNGT 2019). Both directions are two units, whose states are concatenated.
class GatedUnit {
 public:
  struct Settings {
    UnitSettings unit;
    GateBranch gate;
    bool projection = true;  ///< false: E must be the width of the states
    UnitDirection direction = UnitDirection::forward;
  };
  /// `output_scale` multiplies the initial values of O.
  GatedUnit(const Builder& builder, const Settings& settings, std::int64_t width,
            float output_scale = 1.0f);
  struct Result {
    Var output;               ///< [T,B,E]
    std::vector<Var> states;  ///< of the first unit, as RecurrentLayer
  };
  /// x [T,B,E]; initial states and position as RecurrentLayer, none for both directions.
  Result operator()(Tape& tape, const Var& x, const std::vector<Var>& initial,
                    const ops::PaddedSentences& sentences, std::int64_t position = 0) const;
  /// As RecurrentLayer::saved_floats().
  std::int64_t saved_floats() const;
  void freeze(const Context& context) const;

 private:
  UnitDirection direction_;
  GateBranch kind_;
  RecurrentLayer unit_;
  std::optional<RecurrentLayer> second_;  // backward, where there are both directions
  Parameter* gate_ = nullptr;             // G [E,H or 2H]
  Parameter* output_ = nullptr;           // O [H or 2H,E]
  std::int64_t states_;                   // H or 2H
};

}  // namespace nmt
