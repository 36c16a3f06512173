#pragma once

namespace nmt::kernels {

/// What carries the bias of a gate: a plane of xW, a plane of h'U (with layer normalization: the
/// bias of its normalization), or a trained vector of the unit.
enum class BiasOf { input, state, vector };

/// How one bias that a gate reads starts with --gate-init.
struct GateBias {
  BiasOf of;
  int plane;       ///< of xW or of h'U, or the index of the vector
  float constant;  ///< `constant`: the start over X (--gate-bias)
  /// `chrono`: the start over log U(1, T-1); 1 where the bias raises a forget gate, -1 where it
  /// raises an input gate (Tallec & Ollivier, ICLR 2018).
  float chrono;
};

/// X of a unit that does not define `gate_bias`.
constexpr float usual_gate_bias = 2;

}  // namespace nmt::kernels
