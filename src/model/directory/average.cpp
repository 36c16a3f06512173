#include "model/directory/average.h"

#include "core/error.h"

#include <cmath>
#include <cstring>

namespace nmt {
namespace {

void expect_same_tensors(const safetensors::File& first, const safetensors::File& file) {
  for (const safetensors::View& tensor : first.tensors()) {
    const safetensors::View* other = file.find(tensor.name);
    if (!other)
      fail(ExitStatus::data, "{}: lacks tensor {}, which {} has", file.path(), tensor.name,
           first.path());
    if (other->shape != tensor.shape || other->dtype != tensor.dtype)
      fail(ExitStatus::data, "{}: {} is {} {}, and {} {} in {}: they cannot be averaged",
           file.path(), tensor.name, name_of(other->dtype), other->shape_text(),
           name_of(tensor.dtype), tensor.shape_text(), first.path());
  }
  for (const safetensors::View& tensor : file.tensors())
    if (!first.find(tensor.name))
      fail(ExitStatus::data, "{}: has tensor {}, which {} lacks", file.path(), tensor.name,
           first.path());
}

}  // namespace

AveragedWeights average_weights(const std::vector<std::unique_ptr<safetensors::File>>& files) {
  if (files.empty()) fail(ExitStatus::usage, "no checkpoints to average");
  for (const auto& file : files) expect_same_tensors(*files.front(), *file);
  AveragedWeights out;
  std::vector<double> sums;
  for (const safetensors::View& tensor : files.front()->tensors()) {
    if (tensor.dtype != safetensors::FileDtype::f32)
      fail(ExitStatus::data, "{}: {} is {}; only F32 tensors can be averaged",
           files.front()->path(), tensor.name, name_of(tensor.dtype));
    const std::size_t n = tensor.bytes() / sizeof(float);
    sums.assign(n, 0.0);
    for (const auto& file : files) {
      const safetensors::View& part = *file->find(tensor.name);
      for (std::size_t i = 0; i < n; ++i) {
        float value = 0;
        std::memcpy(&value, part.data + i * sizeof(float), sizeof(float));
        sums[i] += static_cast<double>(value);
      }
      file->forget(part);
    }
    std::vector<float>& mean = out.values.emplace_back(n);
    for (std::size_t i = 0; i < n; ++i) {
      mean[i] = static_cast<float>(sums[i] / static_cast<double>(files.size()));
      if (!std::isfinite(mean[i]))
        fail(ExitStatus::data, "{}: tensor {}: the mean of a weight is {}, expected a finite value",
             files.front()->path(), tensor.name, mean[i]);
    }
    out.tensors.emplace_back(tensor.name, tensor.dtype, tensor.shape, mean.data());
  }
  return out;
}

}  // namespace nmt
