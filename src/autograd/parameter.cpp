#include "autograd/parameter.h"

#include "autograd/orthogonal.h"
#include "kernels/pointwise.h"
#include "tensor/copy.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

namespace nmt {
void Parameter::load() {
  if (fetch) std::exchange(fetch, nullptr)(*this);
}

Parameter& ParameterSet::add(const Context& context, const std::string& name, Shape shape,
                             Init init, Rng& rng, int planes, float scale) {
  NMT_CHECK(!find(name), "duplicate parameter {}", name);
  Parameter& p = parameters_.emplace_back();
  p.name = name;
  p.shape = shape;
  if (!context.arena) return p;  // names and shapes only
  p.value = context.empty(shape);
  if (unset_) return p;
  p.gradient = context.empty(shape);
  const std::int64_t n = shape.elements(), width = shape[-1] / planes;
  const std::int64_t rows =
      shape.rank() == 3 ? shape[1] : shape.rows();  // of one block: the fan-in of an output
  dispatch(context,
           [&](const auto& backend) { kernels::fill(backend, p.gradient.f32(), n, 0.0f); });
  std::vector<float> values(static_cast<std::size_t>(n));
  float* value = values.data();
  switch (init) {
    case Init::zero: std::fill_n(value, n, 0.0f); break;
    case Init::one: std::fill_n(value, n, 1.0f); break;
    case Init::embedding: {
      const float deviation = 1.0f / std::sqrt(static_cast<float>(shape[-1]));
      fill_normal(context.cpu, value, n, rng);
      for (std::int64_t i = 0; i < n; ++i) value[i] *= deviation;
      break;
    }
    case Init::glorot: {
      const float bound = std::sqrt(6.0f / static_cast<float>(rows + width));
      for (std::int64_t i = 0; i < n; ++i) value[i] = bound * (2.0f * rng.uniform() - 1.0f);
      break;
    }
    case Init::orthogonal:
      for (std::int64_t first = 0; first < n; first += rows * shape[-1])
        for (int plane = 0; plane < planes; ++plane)
          fill_orthogonal(context.cpu, value + first + plane * width, rows, width, shape[-1], rng);
      break;
    case Init::uniform:
      for (std::int64_t i = 0; i < n; ++i) value[i] = 2.0f * rng.uniform() - 1.0f;
      break;
    case Init::normal: fill_normal(context.cpu, value, n, rng); break;
  }
  if (scale != 1.0f)
    for (std::int64_t i = 0; i < n; ++i) value[i] *= scale;
  upload(context, std::span<const float>(values), p.value);
  return p;
}

Parameter* ParameterSet::find(const std::string& name) {
  for (Parameter& p : parameters_)
    if (p.name == name) return &p;
  return nullptr;
}

std::int64_t ParameterSet::elements() const {
  std::int64_t sum = 0;
  for (const Parameter& p : parameters_) sum += p.shape.elements();
  return sum;
}

}  // namespace nmt
