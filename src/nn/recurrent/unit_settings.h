#pragma once

#include "kernels/recurrent/matrix_state.h"
#include "kernels/recurrent/unit.h"
#include "nn/recurrent/gate_start.h"

#include <cstdint>
#include <numeric>

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
  kernels::LayerIndex place = {};  ///< what starts of trained vectors may depend on

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

}  // namespace nmt
