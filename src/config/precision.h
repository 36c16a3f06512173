#pragma once

#include <string_view>

namespace nmt {

/// What products read, as --precision says it. Everything else is float32: stored weights and their
/// updates, gradients, states, sums.
enum class Precision {
  float32,
  tf32,      ///< on a GPU: inputs of products rounded to 10 bits of fraction by the tensor cores
  bfloat16,  ///< on a GPU: inputs of products rounded to 7 bits of fraction, same range as float32
  int8       ///< on the CPU: weights of eight bits, while decoding
};

inline const char* name_of(Precision precision) {
  switch (precision) {
    case Precision::float32: return "float32";
    case Precision::tf32: return "tf32";
    case Precision::bfloat16: return "bfloat16";
    case Precision::int8: break;
  }
  return "int8";
}
/// Error (usage): none of these.
Precision parse_precision(std::string_view text);

}  // namespace nmt
