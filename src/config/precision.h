#pragma once

#include "config/enum_names.h"

namespace nmt {

/// Input precision of matrix products, the value of --precision. Trained weights, gradients,
/// recurrent states and sums are float32; on the CPU, inference rounds the weights only.
enum class Precision {
  float32,
  tf32,      ///< on a GPU: inputs of products rounded to 10 bits of fraction by the tensor cores
  bfloat16,  ///< inputs of products rounded to 7 bits of fraction, same range as float32
  int8       ///< on the CPU, decoding only: 8-bit weights
};

template <>
struct EnumNames<Precision> {
  static constexpr std::array<std::string_view, 4> names{"float32", "tf32", "bfloat16", "int8"};
};

}  // namespace nmt
