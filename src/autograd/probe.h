#pragma once

#include "kernels/recurrent/unit.h"
#include "tensor/tensor.h"

#include <memory>
#include <string>
#include <vector>

namespace nmt {

/// The gates of one unit at every step of a pass.
struct GateRecord {
  std::string name;  ///< name of the layer, for example "encoder.layer_0.forward"
  const kernels::Unit* unit = nullptr;
  std::int64_t width = 0;  ///< H
  /// G: numbers of a gate at a step. H; of a unit with a matrix state, those of its heads
  /// (kernels/recurrent/matrix_state.h).
  std::int64_t gates = 0;
  bool reverse = false;  ///< whether it reads the sequence backwards
  int lower = -1;  ///< for the second unit of a step: index of the record of the first one; else -1
  Tensor input, forget;  ///< [T,B,G]; empty when the unit has no gates
  /// [T,B,H]: the derivative of the state after each step with respect to the state before it (of
  /// the unit's last state vector), channel by channel; empty for a matrix unit, whose derivative
  /// is a matrix, and for a unit with a matrix state.
  Tensor slope;
};

/// Gates and attention recorded during a pass without gradients, for inspection (Tape::watch).
/// Units are in the order of execution. All tensors are in host memory, on every device.
struct Probe {
  std::shared_ptr<Arena> host = std::make_shared<Arena>();  ///< owns the tensors below
  std::vector<GateRecord> units;
  std::size_t encoder_units =
      0;             ///< number of leading units that read the source; the others read the target
  Tensor attention;  ///< [T,B,heads,S]; empty in a model without attention
};

}  // namespace nmt
