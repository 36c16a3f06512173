#pragma once

#include "autograd/parameter.h"
#include "tensor/safetensors.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

// Storage of reduced-precision weights in model files. Parameters with Parameter::may_be_rounded()
// are BF16, or I8 with one scale per column (per row of a table) in an F32 tensor "NAME.scales":
// weight = scale * q, q in [-127,127] (kernels/products/int8/gemm_int8.h). All others are F32.

/// The name used by --precision and config.json: float32, bfloat16, int8.
const char* precision_name(Dtype weights);
/// Nothing for any other name, including tf32, which is not a storage type.
std::optional<Dtype> parse_weights(std::string_view name);

/// The name of the scales of a parameter in a file.
std::string scales_name(const Parameter& parameter);
/// Checks a parameter in a file with weights of type `weights`. Errors (data): missing, of another
/// dtype or shape; scales that are missing, negative or NaN; a q of -128.
void check_stored(const safetensors::File& file, const Parameter& parameter, Dtype weights);
/// Loads the value of a parameter from a checked file: as stored if the context's weights have the
/// same dtype, else widened to float32. Releases the pages of the file.
void fetch_stored(const safetensors::File& file, Dtype weights, const Context& context,
                  Parameter& parameter);

/// Bytes of these parameters in a file with weights of type `weights`, which is also the memory of
/// a model that decodes with them.
std::int64_t stored_bytes(const ParameterSet& parameters, Dtype weights);

/// Converted tensors of a model, and the memory that holds them.
struct ConvertedWeights {
  std::vector<std::vector<std::byte>> memory;
  std::vector<safetensors::View> tensors;
};
/// Converts the tensors of a checked file with weights of type `from`. Errors (data): a weight that
/// cannot be rounded, by name.
ConvertedWeights convert_weights(const safetensors::File& file, Dtype from,
                                 const ParameterSet& parameters, Dtype to, const Cpu& cpu);

}  // namespace nmt
