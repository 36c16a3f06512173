#pragma once

#include "autograd/parameter.h"
#include "tensor/safetensors.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nmt {

// How a model file holds weights of fewer bits. A parameter of which Parameter::may_be_rounded()
// says so is BF16, or I8 with the scale of each column (of each row of a table) in an F32 tensor
// beside it, "NAME.scales": its weight is scale * q, q in
// [-127,127] (kernels/products/gemm_int8.h). All others are F32.

/// The name behind --precision and in config.json: float32, bfloat16, int8.
const char* precision_name(Dtype weights);
/// Nothing for another name, tf32 too: weights are not stored so.
std::optional<Dtype> parse_weights(std::string_view name);

/// The name of a parameter's scales in a file.
std::string scales_name(const Parameter& parameter);
/// The parameter as a file of weights in `weights` must have it. Errors (data): missing, of another
/// dtype or shape; scales that are missing or no numbers of 0 or more; a q of -128.
void check_stored(const safetensors::File& file, const Parameter& parameter, Dtype weights);
/// Fills the parameter's value from a file that was checked: as it is stored where the context's
/// weights are of the same dtype, else widened to float32. Gives the file's pages back.
void fetch_stored(const safetensors::File& file, Dtype weights, const Context& context,
                  Parameter& parameter);

/// Bytes of these parameters in a file of weights in `weights`, which is what a model takes that
/// decodes with them.
std::int64_t stored_bytes(const ParameterSet& parameters, Dtype weights);

/// Tensors of a model in fewer bits (or in float32, widened), with the memory that they lie in.
struct ConvertedWeights {
  std::vector<std::vector<std::byte>> memory;
  std::vector<safetensors::View> tensors;
};
/// Converts the tensors of a file of weights in `from` that was checked. Errors (data): a weight
/// that cannot be rounded, by name.
ConvertedWeights convert_weights(const safetensors::File& file, Dtype from,
                                 const ParameterSet& parameters, Dtype to, const Cpu& cpu);

}  // namespace nmt
