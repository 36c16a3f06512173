#pragma once

#include "kernels/recurrent/unit.h"
#include "tensor/tensor.h"

#include <memory>
#include <string>
#include <vector>

namespace nmt {

/// The gates of one unit at every step of a pass.
struct GateRecord {
  std::string name;  ///< of the layer: "encoder.layer_0.forward"
  const kernels::Unit* unit = nullptr;
  std::int64_t width = 0;  ///< H
  bool reverse = false;    ///< it read the sequence from its end
  int lower = -1;        ///< of a step's second unit: the place of the first one's record; else -1
  Tensor input, forget;  ///< [T,B,H]; empty when the unit has no gates
};

/// What a pass without recording leaves behind for people to look at (Tape::watch): units in the
/// order in which they ran. All lies in the host's memory, whatever the device.
struct Probe {
  std::shared_ptr<Arena> host = std::make_shared<Arena>();  ///< where the tensors below lie
  std::vector<GateRecord> units;
  std::size_t encoder_units = 0;  ///< the first so many read the source, the others the target
  Tensor attention;               ///< [T,B,heads,S]; empty in a model without attention
};

}  // namespace nmt
