#pragma once

#include "kernels/products/product_method.h"
#include "tensor/context.h"

namespace nmt::app {

/// Sets the type of the weights of models that the context freezes. Models in int8 compute the same
/// bits on every instruction set, so their remaining products of float32 round each operation.
inline void set_weight_type(Context& context, Dtype type) {
  context.weights = type;
  context.cpu.products = type == Dtype::i8 ? &kernels::ProductMethod::separate() : nullptr;
}

}  // namespace nmt::app
