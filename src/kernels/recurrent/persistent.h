#pragma once

#include "kernels/recurrent/recurrence.h"

#include <string>

namespace nmt::kernels {

/// What decides whether the recurrences of a cell can be persistent.
struct CellShape {
  const Unit* unit = nullptr;
  std::int64_t width = 0, groups = 1;
  bool rearrange = false, normalizes = false;
};
inline CellShape shape_of(const Cell& cell) {
  return {cell.unit, cell.width, cell.groups, cell.rearrange, cell.gain != nullptr};
}

/// Why a recurrence of the cell over `batch` sentences cannot run as one kernel for all steps
/// (CudaDevice::set_persistent()), or empty. `backward`: the backward pass instead of the forward
/// pass. The answer depends on the shape, device and precision; `batch` is at least 1.
inline std::string why_not_persistent(const Cpu&, const CellShape&, std::int64_t, bool) {
  return "the CPU";
}
std::string why_not_persistent(const Cuda& cuda, const CellShape& cell, std::int64_t batch,
                               bool backward);

}  // namespace nmt::kernels
