#include "model/directory/stored_weights.h"

#include "core/error.h"
#include "kernels/products/bf16/gemm_bf16.h"
#include "kernels/products/int8/gemm_int8.h"
#include "tensor/copy.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace nmt {
namespace {

bool is_rounded(const Parameter& p, Dtype weights) {
  return weights != Dtype::f32 && p.may_be_rounded();
}

std::int64_t columns_of(const Parameter& p) {
  return p.shape[p.is_table() ? 0 : 1];
}

// In a file tensors lie at any byte.
template <class T>
T number(const safetensors::View& view, std::int64_t i) {
  T value;
  std::memcpy(&value, view.data + i * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}

// The weights as float32 [rows, columns], as they are stored.
void widen(const safetensors::File& file, const Parameter& p, Dtype weights, float* out) {
  const safetensors::View& view = *file.find(p.name);
  const std::int64_t n = p.shape.elements(), width = p.shape[-1];
  if (!is_rounded(p, weights)) {
    std::memcpy(out, view.data, view.bytes());
  } else if (weights == Dtype::bf16) {
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = kernels::from_bf16(number<std::uint16_t>(view, i));
  } else {
    const safetensors::View& scales = *file.find(scales_name(p));
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = number<float>(scales, p.is_table() ? i / width : i % width) *
               static_cast<float>(number<std::int8_t>(view, i));
  }
}

Tensor copied(const Context& context, const safetensors::View& view, Shape shape, Dtype dtype) {
  Tensor tensor = context.empty(shape, dtype);
  std::memcpy(dtype == Dtype::i8     ? static_cast<void*>(tensor.data<std::int8_t>())
              : dtype == Dtype::bf16 ? static_cast<void*>(tensor.data<std::uint16_t>())
                                     : static_cast<void*>(tensor.f32()),
              view.data, view.bytes());
  return tensor;
}

}  // namespace

const char* precision_name(Dtype weights) {
  return weights == Dtype::i8 ? "int8" : weights == Dtype::bf16 ? "bfloat16" : "float32";
}

std::optional<Dtype> parse_weights(std::string_view name) {
  for (const Dtype weights : {Dtype::f32, Dtype::bf16, Dtype::i8})
    if (name == precision_name(weights)) return weights;
  return std::nullopt;
}

std::string scales_name(const Parameter& parameter) {
  return parameter.name + ".scales";
}

void check_stored(const safetensors::File& file, const Parameter& p, Dtype weights) {
  const bool rounded = is_rounded(p, weights);
  const safetensors::View& view = file.require(
      p.name, rounded ? safetensors::dtype_of(weights) : safetensors::FileDtype::f32, p.shape);
  if (!rounded || weights != Dtype::i8) return;
  const safetensors::View& scales =
      file.require(scales_name(p), safetensors::FileDtype::f32, {columns_of(p)});
  for (std::int64_t i = 0; i < columns_of(p); ++i)
    if (const float scale = number<float>(scales, i); !(scale >= 0.0f) || std::isinf(scale))
      fail(ExitStatus::data, "{}: tensor {}: scale {} is {}, expected a non-negative number",
           file.path(), scales.name, i, scale);
  // Not every processor's product takes -128 for what it is.
  if (const void* found = std::memchr(view.data, 0x80, view.bytes()))
    fail(ExitStatus::data, "{}: tensor {}: element {} is -128, expected -127 to 127", file.path(),
         p.name, static_cast<const std::byte*>(found) - view.data);
}

void fetch_stored(const safetensors::File& file, Dtype weights, const Context& context,
                  Parameter& p) {
  const safetensors::View& view = *file.find(p.name);
  p.rounded = {};
  if (!is_rounded(p, weights)) {
    if (!p.value) p.value = context.empty(p.shape);
    dispatch(context, [&](const auto& backend) {
      copy_in(backend, p.value.f32(), view.data, view.bytes());
    });
  } else if (context.weights == weights) {
    p.value = copied(context, view, p.shape, weights);
    if (weights == Dtype::i8)
      p.scales = copied(context, *file.find(scales_name(p)), {columns_of(p)}, Dtype::f32);
  } else {
    std::vector<float> values(static_cast<std::size_t>(p.shape.elements()));
    widen(file, p, weights, values.data());
    if (!p.value) p.value = context.empty(p.shape);
    dispatch(context, [&](const auto& backend) {
      copy_in(backend, p.value.f32(), values.data(), values.size() * sizeof(float));
    });
  }
  file.forget(view);
}

std::int64_t stored_bytes(const ParameterSet& parameters, Dtype weights) {
  std::int64_t bytes = 0;
  for (const Parameter& p : parameters.all()) {
    const bool rounded = is_rounded(p, weights);
    bytes += p.shape.elements() * bytes_of(rounded ? weights : Dtype::f32);
    if (rounded && weights == Dtype::i8) bytes += columns_of(p) * bytes_of(Dtype::f32);
  }
  return bytes;
}

ConvertedWeights convert_weights(const safetensors::File& file, Dtype from,
                                 const ParameterSet& parameters, Dtype to, const Cpu& cpu) {
  ConvertedWeights out;
  std::vector<float> values;
  const auto add = [&](const std::string& name, Dtype dtype, std::vector<std::int64_t> shape,
                       std::int64_t elements) {
    std::vector<std::byte>& memory =
        out.memory.emplace_back(static_cast<std::size_t>(elements * bytes_of(dtype)));
    out.tensors.emplace_back(name, safetensors::dtype_of(dtype), std::move(shape), memory.data());
    return memory.data();
  };
  for (const Parameter& p : parameters.all()) {
    const safetensors::View& view = *file.find(p.name);
    const std::int64_t n = p.shape.elements();
    values.resize(static_cast<std::size_t>(n));
    widen(file, p, from, values.data());
    file.forget(view);
    const Dtype dtype = is_rounded(p, to) ? to : Dtype::f32;
    std::byte* data = add(p.name, dtype, view.shape, n);
    const bool rounds = dtype != Dtype::f32;
    for (const float value : values)
      if (!std::isfinite(rounds ? kernels::from_bf16(kernels::to_bf16(value)) : value))
        fail(ExitStatus::data, "{}: tensor {}: a weight is {}, expected a finite value{}",
             file.path(), p.name, value, rounds ? " to round" : "");
    if (!rounds) {
      std::memcpy(data, values.data(), values.size() * sizeof(float));
      continue;
    }
    if (dtype == Dtype::bf16) {
      kernels::round_bf16(values.data(), n, reinterpret_cast<std::uint16_t*>(data));
    } else {
      const std::int64_t columns = columns_of(p);
      auto* scales = reinterpret_cast<float*>(add(scales_name(p), Dtype::f32, {columns}, columns));
      kernels::round_int8(cpu, p.is_table(), n / columns, columns, values.data(), p.shape[1],
                          reinterpret_cast<std::int8_t*>(data), scales);
    }
  }
  return out;
}

}  // namespace nmt
