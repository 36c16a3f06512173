#pragma once

namespace nmt::kernels {

/// The place of a layer in its stack, counted from the input: layer 0, ..., layers - 1.
struct LayerIndex {
  int layer = 0;
  int layers = 1;
};

}  // namespace nmt::kernels
