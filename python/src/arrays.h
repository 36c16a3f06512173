#pragma once

#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nmt/scorer.h>
#include <nmt/translator.h>

namespace nmt::python {

using FloatVector = nanobind::ndarray<nanobind::numpy, float, nanobind::ndim<1>>;
using FloatMatrix = nanobind::ndarray<nanobind::numpy, float, nanobind::ndim<2>>;

/// numpy arrays that own a copy of the values.
inline FloatVector vector(const std::vector<float>& values) {
  auto* copy = new std::vector<float>(values);
  const nanobind::capsule owner(
      copy, [](void* data) noexcept { delete static_cast<std::vector<float>*>(data); });
  return FloatVector(copy->data(), {copy->size()}, owner);
}

inline FloatMatrix matrix(const Attention& attention) {
  auto* copy = new std::vector<float>(attention.weights);
  const nanobind::capsule owner(
      copy, [](void* data) noexcept { delete static_cast<std::vector<float>*>(data); });
  return FloatMatrix(
      copy->data(),
      {static_cast<std::size_t>(attention.rows), static_cast<std::size_t>(attention.columns)},
      owner);
}

}  // namespace nmt::python
